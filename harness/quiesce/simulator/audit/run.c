#include "run.h"

#include "system.h"

/* In what harness/quiesce/simulator/launch.py sets: "flavour=cuda;version=12;…;folder=…". */
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

/* Take what is left of a setting's value, up to the next ';'. */
static void take_folder(reader *from) {
    size_t length = 0;
    int byte;
    while ((byte = next(from)) > 0 && byte != ';') {
        if (length + 1 == sizeof folder) {
            length = 0;  // a path that cannot be
            break;
        }
        folder[length++] = (char)byte;
    }
    folder[length] = 0;
}

/* Look through the settings; the reader stands at the first one. */
static void take_settings(reader *from) {
    const char *expected = setting;
    int byte;
    while ((byte = next(from)) > 0) {
        if (byte == ';') {
            expected = setting;
        } else if (expected && byte == *expected) {
            if (!*++expected) {
                take_folder(from);
                return;
            }
        } else {
            expected = NULL;
        }
    }
}

void run_find(void) {
    reader from = {.file = open_file("/proc/self/environ", O_RDONLY)};
    if (from.file < 0) return;
    const char *expected = variable;
    int byte;
    while ((byte = next(&from)) >= 0) {
        if (!byte) {
            expected = variable;
        } else if (expected && byte == *expected) {
            if (!*++expected) {
                take_settings(&from);
                break;
            }
        } else {
            expected = NULL;
        }
    }
    close_file(from.file);
}

const char *run_folder(void) { return folder; }

int run_has(const char *path) { return begins_with(path, folder) && path[length_of(folder)] == '/'; }

int run_library(char path[PATH_BYTES], const char *beginning, const char *name) {
    path[0] = 0;
    return append(path, PATH_BYTES, folder) && append(path, PATH_BYTES, "/lib/") &&
           append(path, PATH_BYTES, beginning) && append(path, PATH_BYTES, name);
}
