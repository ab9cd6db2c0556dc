#include "witness.h"

#include "run.h"
#include "system.h"

enum { SEEN_MAX = 1024, RECORD_BYTES = 3 * PATH_BYTES };

static unsigned long seen[SEEN_MAX];
static long process;
static int count;

/* FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/ */
static unsigned long hashed(unsigned long hash, const char *text) {
    do hash = (hash ^ (unsigned char)*text) * 0x100000001b3UL;
    while (*text++);
    return hash;
}

/* Say whether it is new in this process. A program may load and unload without end, and a child of fork is another. */
static int is_new(unsigned long hash) {
    long now = call_system(SYS_getpid, 0, 0, 0, 0);
    if (process != now) {
        process = now;
        count = 0;
    }
    for (int each = 0; each < count; each++)
        if (seen[each] == hash) return 0;
    if (count == SEEN_MAX) return 0;
    seen[count++] = hash;
    return 1;
}

static size_t add_field(char *record, size_t used, const char *text) {
    for (; *text && used < RECORD_BYTES - 1; text++) record[used++] = *text;
    record[used++] = 0;
    return used;
}

static size_t add_number(char *record, size_t used, long number) {
    char digits[24];
    size_t first = sizeof digits - 1;
    digits[first] = 0;
    do digits[--first] = (char)('0' + number % 10);
    while (number /= 10);
    return add_field(record, used, &digits[first]);
}

/* Each record is four texts that end with NUL, and is written at once: several processes write to the file. */
void witness(const char *kind, const char *path, const char *client) {
    if (!is_new(hashed(hashed(hashed(0xcbf29ce484222325UL, kind), path), client))) return;
    static char record[RECORD_BYTES + 64], file_path[PATH_BYTES];  // a thread can have a small stack
    file_path[0] = 0;
    if (!append(file_path, sizeof file_path, run_folder()) || !append(file_path, sizeof file_path, "/loads")) return;
    size_t used = add_field(record, 0, kind);
    used = add_number(record, used, process);
    used = add_field(record, used, path);
    used = add_field(record, used, client);
    int file = open_file(file_path, O_WRONLY | O_APPEND | O_CREAT);
    if (file < 0) return;
    call_system(SYS_write, file, (long)record, (long)used, 0);
    close_file(file);
}
