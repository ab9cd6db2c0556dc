#include "machine/loaded_runtime.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

static const struct runtime {
    const char *name;
    enum flavour flavour;
    unsigned long oldest, latest;
} RUNTIMES[] = {
    {"libcudart.so", FLAVOUR_CUDA, 11, 13},
    {"libamdhip64.so", FLAVOUR_HIP, 5, 7},
};

struct search {
    const struct settings *settings;
    const struct runtime *other;  // the first that is not the settings', NULL where there is none
    unsigned version;             // its
    bool has_own;                 // that of the settings is loaded
};

static void look_at(const char *file, const struct runtime *runtime, struct search *search) {
    size_t length = strlen(runtime->name);
    if (strncmp(file, runtime->name, length) || (file[length] && file[length] != '.')) return;
    unsigned long version = file[length] ? strtoul(file + length + 1, NULL, 10) : search->settings->version;
    if (runtime->flavour == search->settings->flavour && version == search->settings->version) {
        search->has_own = true;
    } else if (!search->other && version >= runtime->oldest && version <= runtime->latest) {
        search->other = runtime;
        search->version = (unsigned)version;
    }
}

// Return the SONAME of a library of this run, which needs the simulated runtime; NULL for any other, whose name may be
// the same: the loader knows what was opened in place of an installed runtime by the path of that.
static const char *soname_of_own(const struct dl_phdr_info *info) {
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) dynamic = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    const char *names = NULL;
    for (const ElfW(Dyn) *entry = dynamic; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB) names = (const char *)entry->d_un.d_ptr;
    if (!names) return NULL;
    if ((uintptr_t)names < info->dlpi_addr) names += info->dlpi_addr;
    const char *soname = NULL;
    bool is_own = false;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SONAME) soname = names + entry->d_un.d_val;
        if (entry->d_tag == DT_NEEDED && strstr(names + entry->d_un.d_val, "/libquiesce-simulator.so")) is_own = true;
    }
    return is_own ? soname : NULL;
}

static int look(struct dl_phdr_info *info, size_t bytes, void *data) {
    (void)bytes;
    const char *slash = strrchr(info->dlpi_name, '/');
    for (unsigned i = 0; slash && i < sizeof RUNTIMES / sizeof *RUNTIMES; i++) {
        if (strncmp(slash + 1, RUNTIMES[i].name, strlen(RUNTIMES[i].name))) continue;
        const char *soname = soname_of_own(info);
        if (soname) look_at(soname, &RUNTIMES[i], data);
    }
    return 0;
}

void loaded_runtime_follow(struct settings *settings) {
    if (!settings->follows || quiesce_embedded_version || !*settings->folder) return;
    struct search search = {.settings = settings};
    dl_iterate_phdr(look, &search);
    if (!search.other || search.has_own) return;
    settings->flavour = search.other->flavour;
    settings->version = search.version;
}
