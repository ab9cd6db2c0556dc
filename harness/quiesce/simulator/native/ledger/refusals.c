#include "ledger/refusals.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "machine/disk.h"
#include "machine/settings.h"

enum { NOTED_MAX = 256, MISSING_MAX = 64, LINE_BYTES = PATH_MAX + 256 };

static const char *const KINDS[] = {
    [REFUSAL_NOT_SIMULATED] = "not simulated",
    [REFUSAL_FAILED] = "failed",
    [REFUSAL_ARMED] = "armed",
    [REFUSAL_FORKED] = "forked",
    [REFUSAL_NOT_INSTALLED] = "not installed",
    [REFUSAL_MISSING] = "missing",
};

static uint64_t noted[NOTED_MAX];  // hashes of lines
static unsigned missing_count;     // of those, so that others find room

// The first time of each line; later ones find no room, and are as good as noted. Two threads at once may both be the
// first, which the reader doesn't mind.
static bool is_first(const char *line) {
    uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
    for (; *line; line++) hash = (hash ^ (unsigned char)*line) * 0x100000001b3ull;
    for (unsigned i = 0; i < NOTED_MAX; i++) {
        uint64_t other = __atomic_load_n(&noted[i], __ATOMIC_RELAXED);
        if (other == hash) return false;
        if (!other) {
            __atomic_store_n(&noted[i], hash, __ATOMIC_RELAXED);
            return true;
        }
    }
    return false;
}

// Writes the path of the file that an address lies in, empty where it is not known. The loader has no path for the
// program itself, but what it was called as.
static void find_file(const void *address, char path[PATH_MAX]) {
    Dl_info found;
    struct link_map *map = NULL;
    const char *name = NULL;
    if (address && dladdr1(address, &found, (void **)&map, RTLD_DL_LINKMAP) && map)
        name = *map->l_name ? map->l_name : "/proc/self/exe";
    if (!name || !realpath(name, path)) *path = 0;
}

static void note(const char *line, int length, bool has_ledger) {
    char path[FOLDER_BYTES + 32];
    if (has_ledger && *ledger_stem())
        snprintf(path, sizeof path, "%s.refusals", ledger_stem());
    else
        snprintf(path, sizeof path, "%s/%d.refusals", settings.folder, (int)getpid());
    if (disk_append(path, line, (size_t)length)) return;
    fputs("quiesce: a refused call could not be noted\n", stderr);
    if (has_ledger) ledger_miss(FULL_OTHERS);
}

void refusal_note(enum refusal kind, const char *function, enum status answer, const void *caller) {
    if (!*settings.folder || !function) return;
    char file[PATH_MAX], line[LINE_BYTES];
    find_file(caller, file);
    int length = snprintf(line, sizeof line, "%s\t%s\t%d\t%s\n", KINDS[kind], function, (int)answer, file);
    if (length < LINE_BYTES && is_first(line)) note(line, length, kind != REFUSAL_FORKED);
}

void refusal_note_start(const char *function, const char *why) {
    if (!*settings.folder || !function) return;
    char line[LINE_BYTES];
    int length = snprintf(line, sizeof line, "not started\t%s\t0\t%s\n", function, why);
    if (length < LINE_BYTES) note(line, length, false);
}

void refusal_missing(const char *name, const void *caller) {
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    size_t length = strspn(name, LETTERS);
    if (!length || name[length] || length >= LEDGER_NAME_BYTES) return;
    if (__atomic_fetch_add(&missing_count, 1, __ATOMIC_RELAXED) < MISSING_MAX)
        refusal_note(REFUSAL_MISSING, name, NOT_FOUND, caller);
}

void refusals_open(void) {
    memset(noted, 0, sizeof noted);
    missing_count = 0;
}
