#include "machine/mappings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 + 128, MAPPINGS_MAX = 1 << 17, WORDS = 4096 };

// Of a page, in /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst): it is swapped out or present; it belongs
// to a file or to shared memory.
#define PAGE_IS_TOUCHED (3ull << 62)
#define PAGE_IS_OF_FILE (1ull << 61)

#define TABLE_BYTES (MAPPINGS_MAX * sizeof(struct mapping))

static struct mapping *mappings;
static unsigned mappings_count;

static enum mapping_kind kind_of(const char *access, const char *name) {
    if (access[0] == '-') return MAPPING_GUARD;
    if (access[0] != 'r' || access[2] == 'x') return MAPPING_OTHER;
    if (access[3] != 'p') return access[1] == 'w' ? MAPPING_SHARED : MAPPING_OTHER;
    if (access[1] != 'w') return *name == '[' && strcmp(name, "[heap]") ? MAPPING_OTHER : MAPPING_READ_ONLY;
    if (!*name) return MAPPING_ANONYMOUS;
    if (!strcmp(name, "[heap]")) return MAPPING_HEAP;
    if (!strcmp(name, "[stack]")) return MAPPING_STACK;
    // "[anon:name]": a program has named its memory (prctl(2), PR_SET_VMA)
    return strncmp(name, "[anon", 5) == 0 ? MAPPING_ANONYMOUS : MAPPING_FILE;
}

static void add_line(char *line) {
    struct mapping made;
    char access[8];
    int name_at = 0;
    const char *format = "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n";
    if (sscanf(line, format, &made.start, &made.end, access, &name_at) != 3) return;
    if (mappings_count == MAPPINGS_MAX) return;
    made.kind = kind_of(access, name_at ? line + name_at : "");
    mappings[mappings_count++] = made;
}

void mappings_lines(void (*see)(char *line)) {
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    char line[LINE_BYTES];
    size_t filled = 0;
    for (ssize_t got; (got = read(file, line + filled, sizeof line - 1 - filled)) > 0;) {
        filled += (size_t)got;
        line[filled] = 0;
        char *start = line;
        for (char *end; (end = strchr(start, '\n')); start = end + 1) {
            *end = 0;
            see(start);
        }
        filled -= (size_t)(start - line);
        memmove(line, start, filled);
        if (filled == sizeof line - 1) filled = 0;  // no line of the kernel's is as long
    }
    close(file);
}

unsigned mappings_read(void) {
    mappings_count = 0;
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (!mappings) mappings = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, how, -1, 0);
    if (mappings == MAP_FAILED) return 0;
    mappings_lines(add_line);
    return mappings_count;
}

const struct mapping *mapping_at_index(unsigned index) { return &mappings[index]; }

void mappings_table(void (*add)(const void *start, size_t bytes)) { add(mappings, TABLE_BYTES); }

void mappings_forget(void) {
    if (mappings != MAP_FAILED) munmap(mappings, TABLE_BYTES);
    mappings = NULL;
}

static bool is_there(const struct mapping *mapping) {
    unsigned char page;
    bool is_private = mapping->kind >= MAPPING_FILE;
    return !is_private || !mincore((void *)mapping->start, PAGE_BYTES, &page);
}

bool mappings_are_there(void) {
    for (unsigned i = 0; i < mappings_count; i++)
        if (!is_there(&mappings[i])) return false;
    return true;
}

bool mappings_cover(uint64_t address) {
    for (unsigned i = 0; i < mappings_count; i++)
        if (mappings[i].start <= address && address < mappings[i].end) return true;
    return false;
}

static void each_run(uint64_t start, uint64_t end, uint64_t without, void (*see)(uint64_t start, uint64_t end)) {
    static int file = -2;
    if (file == -2) file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t words[WORDS], page = start / PAGE_BYTES, last = (end + PAGE_BYTES - 1) / PAGE_BYTES, run = start;
    while (file >= 0 && page < last) {
        size_t wanted = (last - page < WORDS ? last - page : WORDS) * sizeof *words;
        ssize_t got = pread(file, words, wanted, (off_t)(page * sizeof *words));
        if (got < (ssize_t)sizeof *words) break;
        for (ssize_t i = 0; i < got / (ssize_t)sizeof *words; i++, page++) {
            if (words[i] & PAGE_IS_TOUCHED && !(words[i] & without)) continue;
            uint64_t absent = page * PAGE_BYTES;
            if (run < absent) see(run, absent);
            run = absent + PAGE_BYTES;
        }
    }
    if (run < end) see(run, end);
}

void mappings_touched(uint64_t start, uint64_t end, void (*see)(uint64_t start, uint64_t end)) {
    each_run(start, end, 0, see);
}

void mappings_written(uint64_t start, uint64_t end, void (*see)(uint64_t start, uint64_t end)) {
    each_run(start, end, PAGE_IS_OF_FILE, see);
}

void mappings_resident(uint64_t start, uint64_t end, void (*see)(uint64_t start, uint64_t end)) {
    unsigned char pages[WORDS];
    uint64_t run = start;
    for (uint64_t at = start; at < end;) {
        uint64_t count = (end - at) / PAGE_BYTES < WORDS ? (end - at) / PAGE_BYTES : WORDS;
        if (!count || mincore((void *)at, count * PAGE_BYTES, pages)) break;
        for (uint64_t i = 0; i < count; i++, at += PAGE_BYTES) {
            if (pages[i] & 1) continue;
            if (run < at) see(run, at);
            run = at + PAGE_BYTES;
        }
    }
    if (run < end) see(run, end);
}
