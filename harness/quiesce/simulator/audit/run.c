#include "run.h"

#include "system.h"

/* In what harness/quiesce/simulator/runtime/launch.py sets: "flavour=cuda;version=12;…;folder=…". */
static const char variable[] = "QUIESCE_SIMULATOR=", setting[] = "folder=";
static char folder[PATH_BYTES];

/* Reads a file byte by byte, from a buffer: an environment can have megabytes. */
typedef struct {
    int file;
    long offset, filled, used;
    char bytes[1024];
} reader;

static int next(reader *from) {
    if (from->used == from->filled) {
        from->filled = read_at(from->file, from->bytes, sizeof from->bytes, from->offset);
        if (from->filled <= 0) return -1;
        from->offset += from->filled;
        from->used = 0;
    }
    return (unsigned char)from->bytes[from->used++];
}

/* The variables that lead a program to the run, each with its value; what was longer than the room is not there. */
static const char *const names[RUN_VARIABLES] = {variable, "LD_AUDIT=", "LD_LIBRARY_PATH=", "GLIBC_TUNABLES="};
static char kept[RUN_VARIABLES][2 * PATH_BYTES];

/* Return the number of the variable whose name this is, RUN_VARIABLES for others. */
static int known(const char *name) {
    int each = 0;
    while (each < RUN_VARIABLES && !is_same(names[each], name)) each++;
    return each;
}

/* Keep what is left of a variable. Return 0 at the end of the environment. */
static int keep_value(reader *from, int which) {
    size_t length = 0;
    int byte, is_whole = which < RUN_VARIABLES;
    if (is_whole) append(kept[which], sizeof kept[which], names[which]), length = length_of(kept[which]);
    while ((byte = next(from)) > 0) {
        if (is_whole && length + 1 < sizeof kept[which])
            kept[which][length++] = (char)byte;
        else
            is_whole = 0;
    }
    if (which < RUN_VARIABLES) kept[which][is_whole ? length : 0] = 0;
    return byte == 0;
}

static void find_folder(void) {
    const char *expected = setting;
    for (const char *each = kept[0][0] ? kept[0] + sizeof variable - 1 : ""; *each; each++) {
        if (*each == ';') {
            expected = setting;
        } else if (expected && *each == *expected) {
            if (*++expected) continue;
            for (size_t length = 0; *++each && *each != ';' && length + 1 < sizeof folder;)
                folder[length++] = *each, folder[length] = 0;
            return;
        } else {
            expected = NULL;
        }
    }
}

void run_find(void) {
    reader from = {.file = open_file("/proc/self/environ", O_RDONLY)};
    if (from.file < 0) return;
    char name[32];
    int byte, is_more = 1;
    while (is_more) {
        size_t length = 0;
        while ((byte = next(&from)) > 0 && length + 2 < sizeof name)
            if ((name[length++] = (char)byte) == '=') break;
        name[length] = 0;
        is_more = byte < 0 ? 0 : byte ? keep_value(&from, known(name)) : 1;
    }
    close_file(from.file);
    find_folder();
}

const char *run_variable(int which, size_t *name_bytes) {
    *name_bytes = length_of(names[which]);
    return kept[which];
}

const char *run_folder(void) { return folder; }

int run_is_of_cuda(void) {
    for (const char *each = kept[0]; *each; each++)
        if (begins_with(each, "flavour=cuda;")) return 1;
    return 0;
}

int run_has(const char *path) { return begins_with(path, folder) && path[length_of(folder)] == '/'; }

int run_library(char path[PATH_BYTES], const char *beginning, const char *name) {
    path[0] = 0;
    return append(path, PATH_BYTES, folder) && append(path, PATH_BYTES, "/lib/") &&
           append(path, PATH_BYTES, beginning) && append(path, PATH_BYTES, name);
}
