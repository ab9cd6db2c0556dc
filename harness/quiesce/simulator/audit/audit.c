/* The dynamic loader asks this module, rtld-audit(7), which file it is to open for a name.

   Programs open a vendor's runtime by its path, through an RPATH, or under another name; LD_LIBRARY_PATH comes too late
   then, and LD_PRELOAD does not help who calls dlsym. Here every such name leads to the library of this run that stands
   for it. A runtime that is linked into a file is redirected, which redirect.c explains.

   The module lies in a namespace of its own, where nothing is shared with the program. It uses no C library, so that no
   second one is loaded, and keeps nothing but the functions that named_stubs.c makes: no other memory, no thread-local
   storage, no handler, no file. The loader calls it with its lock held, so one call at a time. */

#include <link.h>

#include "device_files.h"
#include "execs.h"
#include "provided.h"
#include "redirect.h"
#include "restart.h"
#include "run.h"
#include "served.h"
#include "system.h"
#include "system_calls.h"
#include "thread_storage.h"
#include "witness.h"

#define SHOWN __attribute__((visibility("default")))

static char program[PATH_BYTES];
static const char *last_client = "";
static int has_begun;

SHOWN unsigned int la_version(unsigned int version) {
    run_find();
    if (!*run_folder()) return 0;  // the loader forgets the module
    served_read();
    long length = call_system(SYS_readlink, (long)"/proc/self/exe", (long)program, sizeof program - 1, 0);
    program[length > 0 ? length : 0] = 0;
    witness("started", program, "");
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* Return the path of the run's library, in a place that lasts until the next call. */
static char *library_of_run(const char *beginning, const char *name) {
    static char path[PATH_BYTES];
    return run_library(path, beginning, name) && is_file(path) ? path : NULL;
}

/* Whose runtime or driver of ours this process has loaded first: how its name begins, NULL for none. */
static const char *vendor;

static const char *vendor_of(const char *name) {
    static const char *const vendors[] = {"libcuda", "libamdhip64"};
    for (int each = 0; each < 2; each++)
        if (begins_with(base_name(name), vendors[each])) return vendors[each];
    return NULL;
}

/* Return what is opened in place of a runtime that is not the flavour's; NULL: what was asked for. One that was planned
   for the program comes before all that are installed. Else an installed one leads to ours of its flavour, if the run
   follows the program, and the program has none of another vendor: who looks for the devices of all vendors finds those
   of one. */
static char *other_runtime(const char *name, service answer, const char *stands_in, int is_first) {
    int is_path = base_name(name) != name;
    char *path = is_first ? library_of_run("", base_name(name)) : NULL;
    if (path || !is_path) return path;
    if (answer == NOT_SERVED) answer = served_by_content(name, &stands_in);
    if (answer != FOLLOWED || (vendor && vendor != vendor_of(stands_in))) return NULL;
    path = library_of_run("others/", stands_in);
    if (path) witness("answered", name, last_client);
    return path;
}

static char *searched_first(const char *name) {
    const char *stands_in;
    int is_path = base_name(name) != name;
    service answer = served_as(name, &stands_in);
    if (answer == NO_RUNTIME && is_path) answer = served_by_content(name, &stands_in);
    if (answer == NO_RUNTIME || answer == COMPILER || (is_path && !is_file(name))) return NULL;  // fails, as it would
    if (answer != SERVED) return other_runtime(name, answer, stands_in, 1);
    // one that was planned under its own name has what its clients want beyond the usual
    char *path = library_of_run("", base_name(name));
    if (!path) path = library_of_run("", stands_in);
    if (path) witness("answered", name, last_client);
    return path;
}

/* Return what is opened in place of a file that the loader found for a name without a path. */
static char *found(const char *name) {
    const char *stands_in;
    service answer = vendor_of(name) ? served_as(name, &stands_in) : NO_RUNTIME;
    if ((answer != NOT_SERVED && answer != FOLLOWED) || !is_file(name)) return NULL;
    return other_runtime(name, answer, stands_in, 0);
}

/* Return what is opened in place of a compiler. No name: it is not there, and the loader goes on to the next place,
   which it does not always do for NULL. Where it is nowhere, ours says what to install. Only ours gets the vendor's,
   and opens it where it was witnessed. */
static const char *compiler_instead(const char *name, const char *stands_in, unsigned int flag) {
    if (is_same(base_name(last_client), SIMULATOR_NAME)) return name;
    int is_path = base_name(name) != name;
    if (!is_path && flag == LA_SER_ORIG) return name;
    int is_last = flag == LA_SER_DEFAULT;
    if (!is_last && run_has(name)) return flag == LA_SER_ORIG ? name : "";
    if (!is_last && !is_file(name)) return name;
    if (!run_has(name) && is_file(name)) witness("compiler", name, last_client);
    const char *path = library_of_run("", base_name(name));
    if (!path) path = library_of_run("", stands_in);
    return path ? path : name;
}

/* The cookie of an object is the address of its link map, as the loader has set it. */
static const char *client_of(uintptr_t *cookie) {
    const struct link_map *map = (const struct link_map *)*cookie;
    return map && map->l_name && *map->l_name ? map->l_name : program;
}

SHOWN char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag) {
    const char *stands_in;
    char *other = NULL;
    if (flag == LA_SER_ORIG) last_client = client_of(cookie);
    if (served_as(name, &stands_in) == COMPILER) return (char *)compiler_instead(name, stands_in, flag);
    if (run_has(name)) return (char *)name;
    if (flag == LA_SER_ORIG) {
        other = searched_first(name);
    } else if (!(other = found(name)) && flag == LA_SER_DEFAULT) {
        // found nowhere: a program that sets LD_LIBRARY_PATH for a child leaves out the run's folder
        other = library_of_run("", base_name(name));
        if (!other) other = library_of_run("last-", base_name(name));  // lookalikes.py
    }
    return other ? other : (char *)name;
}

static const char *names_of(const struct link_map *map) {
    const char *names = "";
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB) names = (const char *)entry->d_un.d_ptr;
    return (ElfW(Addr))names < map->l_addr ? names + map->l_addr : names;  // the loader leaves what it can't write
}

static const char *soname_of(const struct link_map *map) {
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SONAME) return names_of(map) + entry->d_un.d_val;
    return "";
}

/* Say whether a runtime is of the run: what was opened in place of an installed one has the path of that. */
static int is_own(const struct link_map *map) {
    if (run_has(map->l_name)) return 1;
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && is_same(base_name(names_of(map) + entry->d_un.d_val), SIMULATOR_NAME))
            return 1;
    return 0;
}

SHOWN void la_preinit(uintptr_t *cookie) {
    (void)cookie;
    has_begun = 1;
}

/* Before release 2.34 of glibc, libpthread has some of the functions as well. */
static void look_at_c_library(struct link_map *map) {
    const char *name = base_name(map->l_name);
    if (is_same(name, SIMULATOR_NAME)) system_calls_tell(map);
    if (has_begun) return;
    if (is_same(name, "libc.so.6")) execs_follow(map), device_files_follow(map);
    if (is_same(name, "libc.so.6") || is_same(name, "libpthread.so.0")) system_calls_follow(map);
}

SHOWN unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    const char *stands_in;
    (void)cookie;
    if (!has_begun && thread_storage_is_short(map)) {
        witness("unheard", program, map->l_name);
        restart_without_audit(program);
    }
    if (!map->l_name || !*map->l_name) {
        if (space == LM_ID_BASE && !has_begun) redirect_look_at(map, program);
        return 0;
    }
    if (space == LM_ID_BASE) look_at_c_library(map);
    service answer = served_as(map->l_name, &stands_in);
    if (answer == NO_RUNTIME && !run_has(map->l_name)) answer = served_as(soname_of(map), &stands_in);
    if (answer == COMPILER) return 0;
    if (run_has(map->l_name) || (answer != NO_RUNTIME && is_own(map))) {
        if (!vendor) vendor = vendor_of(map->l_name);
        if (answer != NO_RUNTIME) witness(answer == SERVED ? "own" : "other", soname_of(map), last_client);
    } else if (answer != NO_RUNTIME) {
        witness("real", map->l_name, last_client);
    } else if (space == LM_ID_BASE) {
        redirect_look_at(map, map->l_name);
    }
    return 0;  // no calls between objects are of interest
}

SHOWN void la_activity(uintptr_t *cookie, unsigned int flag) {
    (void)cookie;
    if (flag == LA_ACT_CONSISTENT) redirect_pending();
}

SHOWN unsigned int la_objclose(uintptr_t *cookie) {
    redirect_forget((const struct link_map *)*cookie);
    return 0;
}
