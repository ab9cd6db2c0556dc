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

static int look(struct dl_phdr_info *info, size_t bytes, void *data) {
    (void)bytes;
    struct search *search = data;
    size_t length = strlen(search->settings->folder);
    const char *path = info->dlpi_name, *slash = strrchr(path, '/');
    if (!slash || strncmp(path, search->settings->folder, length) || path[length] != '/') return 0;  // not a look-alike
    for (unsigned i = 0; i < sizeof RUNTIMES / sizeof *RUNTIMES; i++) look_at(slash + 1, &RUNTIMES[i], search);
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
