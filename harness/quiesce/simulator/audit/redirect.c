#include "redirect.h"

#include "embedded.h"
#include "embedded_names.h"
#include "embedded_symbols.h"
#include "embedded_version.h"
#include "jumps.h"
#include "memory.h"
#include "named_stubs.h"
#include "needs.h"
#include "provided.h"
#include "run.h"
#include "served.h"
#include "witness.h"

/* nvcc links CUDA's runtime into its programs. Such a copy asks the driver for tables that only NVIDIA's has. So a jump
   is written at the entry of each of its public functions, to the function of the same name in the simulated runtime;
   what lies behind the entries is not used any more. That is done between mapping and the first constructor, for all
   functions of a copy or for none. */

typedef struct pending {
    struct pending *next;
    object in;
    needs more;
    mapped_file file;
    char path[PATH_BYTES];
    embedded_functions by_symbols, by_names;
    embedded_functions *found;  // one of these; NULL where there is no runtime
    ElfW(Addr) targets[FUNCTIONS_MAX];
    int version;
} pending;

static pending *first;
static char front[PATH_BYTES];
static int is_refused;

/* A runtime opens the driver by itself, and shares memory and locks with other processes: so all releases from 11.8 to
   13.5 take these from the C library. Few others do, and their files can be as large as PyTorch's. */
static const char *const opening[] = {"dlopen", "dlsym", NULL};
static const char *const sharing[] = {"dlvsym", "mkfifo", "nftw", "pthread_rwlockattr_setpshared", NULL};
enum { OPENING = 2, SHARING_LEAST = 2 };

static int may_have_runtime(const struct link_map *map) {
    dynamic_symbols names;
    if (!dynamic_symbols_open(&names, map)) return 0;
    // a sanitizer that is linked into a program stands between it and the C library
    if (!*map->l_name && dynamic_symbols_find(&names, opening[0])) return 1;
    return dynamic_symbols_needed(&names, opening) == OPENING &&
           dynamic_symbols_needed(&names, sharing) >= SHARING_LEAST;
}

// Find what stands for the runtime: its place, empty where copies shall be left alone. Return 0 where nothing does, as
// in a run of another vendor's runtime.
static int find_front(void) {
    const char *stands_in;
    if (*front || is_refused) return 1;
    service answer = served_as("libcudart_static.so", &stands_in);
    is_refused = answer == NOT_SERVED;
    return is_refused || (answer == SERVED && run_library(front, "", stands_in));
}

static void discard(pending *which) {
    needs_end(&which->more);
    mapped_file_close(&which->file);
    memory_unmap(which, sizeof *which);
}

static int has(const embedded_functions *found, const embedded_function *wanted) {
    for (int each = 0; each < found->count; each++)
        if (is_same(found->functions[each].name, wanted->name))
            return found->functions[each].address == wanted->address;
    return 0;
}

// Find the functions in both ways, which must not contradict each other. Return what is wrong, or NULL; no functions
// where there is no runtime.
static const char *find_functions(pending *which) {
    const char *wrong;
    named names = embedded_by_names(&which->in, &which->by_names, &wrong);
    if (names == NO_NAMES) return NULL;
    int has_symbols =
        mapped_file_open(&which->file, which->path) && embedded_by_symbols(&which->file, &which->by_symbols);
    if (!has_symbols && names == UNKNOWN_NAMES) return wrong;
    which->found = has_symbols ? &which->by_symbols : &which->by_names;
    for (int each = 0; has_symbols && names == FOUND_NAMES && each < which->by_names.count; each++)
        if (!has(which->found, &which->by_names.functions[each]))
            return "its symbols and its names contradict each other";
    return embedded_check(which->found);
}

static const char *prepare(pending *which, struct link_map *map) {
    const char *wrong = find_functions(which);
    if (wrong || !which->found) return wrong;
    if (is_refused) return "as --static-runtime says";
    which->version = embedded_version_of(&which->in, which->found);
    if (!is_file(front)) return "the run has ended";
    return needs_add(&which->more, map, front) ? NULL : "there is no memory for a library that it needs";
}

void redirect_look_at(struct link_map *map, const char *path) {
    if (!find_front() || !may_have_runtime(map) || is_same(base_name(path), SIMULATOR_NAME)) return;
    pending *found = memory_map(sizeof *found);
    if (!found) return;
    append(found->path, sizeof found->path, path);
    const char *wrong = object_describe(&found->in, map, path) ? prepare(found, map) : NULL;
    if (wrong) witness("unredirected", path, wrong);
    if (wrong || !found->found) {
        discard(found);
        return;
    }
    pending **last = &first;  // the first that was loaded is the first to choose the version
    while (*last) last = &(*last)->next;
    *last = found;
}

static const char *redirect(pending *which, const provided *by) {
    const embedded_functions *found = which->found;
    for (int each = 0; each < found->count; each++) {
        which->targets[each] = provided_find(by, found->functions[each].name);
        if (!which->targets[each]) which->targets[each] = named_stub(by, found->functions[each].name);
        if (!which->targets[each]) return "there is no memory for a function that fails by name";
    }
    if (!named_stubs_finish()) return "the system does not let functions be made";
    return jumps_write(&which->in, found, which->targets, which->path);
}

static void tell_version(const char *path, int version) {
    char digits[8] = "";
    for (int at = 5; version && at-- > 0; version /= 10) digits[at] = (char)('0' + version % 10);
    witness("redirected", path, digits);
}

void redirect_pending(void) {
    provided by;
    while (first) {
        pending *which = first;
        first = which->next;
        const char *wrong = "the simulated runtime was not loaded beside it";
        if (provided_open(&by, which->in.map)) wrong = redirect(which, &by);
        if (wrong) {
            witness("unredirected", which->path, wrong);
        } else {
            embedded_version_choose(which->version, which->in.map, &by);
            tell_version(which->path, which->version);
        }
        discard(which);
    }
}

void redirect_forget(const struct link_map *map) {
    for (pending **each = &first; *each; each = &(*each)->next) {
        if ((*each)->in.map != map) continue;
        pending *gone = *each;
        *each = gone->next;
        discard(gone);
        return;
    }
}
