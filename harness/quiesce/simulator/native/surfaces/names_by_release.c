#include "surfaces/names_by_release.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/device.h"
#include "machine/settings.h"

enum { NAME_BYTES = 64 };

struct named {
    char name[NAME_BYTES];
    int since;
};

// Both are sorted by name.
static const struct named OF_DRIVER[] = {
#define DRIVER_FUNCTION(name, since) {#name, since},
#include "surfaces/driver_functions.inc"
#undef DRIVER_FUNCTION
};
static const struct named OF_HIP[] = {
#define HIP_FUNCTION(name, since) {#name, since},
#include "surfaces/hip_functions.inc"
#undef HIP_FUNCTION
};

static const char *const DRIVER_FORMS[] = {"", "_v2", "_v3", "_v4", NULL}, *const HIP_FORMS[] = {"", "R0600", NULL};
static const char *const DRIVER_PER_THREAD[] = {"_ptsz", "_ptds", NULL}, *const HIP_PER_THREAD[] = {"_spt", NULL};

static bool is_hip(void) { return settings.flavour == FLAVOUR_HIP; }

int name_release(void) {
    if (!is_hip()) return device_release();
    switch (settings.version) {  // the last of each
        case 5: return 5070;
        case 6: return 6040;
        case 7: return 7020;
        default: return (int)settings.version * 1000;
    }
}

static int compare(const void *name, const void *row) { return strcmp(name, ((const struct named *)row)->name); }

static const struct named *find(const char *name, const char *suffix) {
    char whole[NAME_BYTES];
    int length = snprintf(whole, sizeof whole, "%s%s", name, suffix);
    if (length >= NAME_BYTES) return NULL;
    if (is_hip()) return bsearch(whole, OF_HIP, sizeof OF_HIP / sizeof *OF_HIP, sizeof *OF_HIP, compare);
    return bsearch(whole, OF_DRIVER, sizeof OF_DRIVER / sizeof *OF_DRIVER, sizeof *OF_DRIVER, compare);
}

enum lookup name_look_up(const char *name, int release, bool per_thread, const char **simulated) {
    const struct named *best = NULL;
    bool is_known = false;
    for (const char *const *form = is_hip() ? HIP_FORMS : DRIVER_FORMS; *form; form++) {
        const struct named *found = find(name, *form);
        if (!found) continue;
        is_known = true;
        if (found->since <= release && (!best || best->since <= found->since)) best = found;
    }
    if (!best) return is_known ? NAME_NEWER : NAME_UNKNOWN;
    for (const char *const *own = is_hip() ? HIP_PER_THREAD : DRIVER_PER_THREAD; per_thread && *own; own++) {
        const struct named *found = find(best->name, *own);
        if (found && found->since <= release) best = found;
    }
    *simulated = best->name;
    return NAME_FOUND;
}

bool name_is_missed(const char *name) {
    static const char *const ENDS[] = {"_ptsz", "_ptds", "_spt", "_v2", "_v3", "_v4"};
    const char *prefix = is_hip() ? "hip" : "cu";
    size_t prefix_bytes = strlen(prefix);
    if (strncmp(name, prefix, prefix_bytes) || name[prefix_bytes] < 'A' || name[prefix_bytes] > 'Z') return false;
    if (find(name, "")) return true;
    char base[NAME_BYTES];
    if (snprintf(base, sizeof base, "%s", name) >= NAME_BYTES) return true;
    for (unsigned i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
        size_t bytes = strlen(base), end_bytes = strlen(ENDS[i]);
        if (bytes > end_bytes && !strcmp(base + bytes - end_bytes, ENDS[i])) base[bytes - end_bytes] = 0;
    }
    return !find(base, "");
}
