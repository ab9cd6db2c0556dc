#include "kernels/uncomputed.h"

#include <stdbool.h>
#include <stdio.h>

#include "ledger/ledger.h"
#include "machine/disk.h"
#include "machine/settings.h"

enum { LINE_BYTES = 4096 };

// The log has a line for each kernel: its name, the reason, and whether it had begun, with tabs between.
static void make_plain(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ') *text = ' ';
}

static void note(const char *kernel, const char *reason, bool has_begun) {
    char name[LINE_BYTES / 2], why[LINE_BYTES / 4], line[LINE_BYTES], path[FOLDER_BYTES + 64];
    snprintf(name, sizeof name, "%s", kernel);
    snprintf(why, sizeof why, "%s", reason);
    make_plain(name);
    make_plain(why);
    fprintf(stderr, "quiesce: kernel '%.200s' %s%s\n", name, has_begun ? "" : "does not compute: ", why);
    if (!*settings.folder) return;
    int length = snprintf(line, sizeof line, "%s\t%s\t%d\n", name, why, has_begun);
    snprintf(path, sizeof path, "%s.uncomputed", ledger_stem());
    if (disk_append(path, line, (size_t)length)) return;
    fputs("quiesce: that could not be noted\n", stderr);
    ledger_miss(FULL_OTHERS);
}

void uncomputed_note(const char *kernel, const char *reason) { note(kernel, reason, false); }

void unfinished_note(const char *kernel, const char *how) { note(kernel, how, true); }
