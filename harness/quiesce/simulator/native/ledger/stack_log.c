#include "ledger/stack_log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "machine/mappings.h"

#define MAGIC 0x31534b4353455551ull  // "QUESCKS1", little-endian
#define LOG_BYTES (1ull << 30)       // of address space and of a sparse file; only what is written costs anything

enum { MAPPINGS_MAX = 4096, LINE_BYTES = 4096 + 128 };

static struct stacks_header *header;

// The executable mappings that the log holds.
static struct code {
    uint64_t start, end;
} mappings[MAPPINGS_MAX];
static unsigned mappings_count;

// A hash table of records, by content; entries are their numbers.
static uint32_t *table;
static uint32_t table_capacity, table_count;

// -- records ---------------------------------------------------------------------------------------------------------

static struct stack_head *record_at(uint32_t number) { return (struct stack_head *)((char *)header + 8ull * number); }

static uint32_t append(uint32_t kind, const void *content, uint32_t length_bytes) {
    uint64_t footprint = (sizeof(struct stack_head) + length_bytes + 7) / 8 * 8, start = header->used_bytes;
    if (footprint > LOG_BYTES - start) return 0;
    struct stack_head *head = (struct stack_head *)((char *)header + start);
    *head = (struct stack_head){kind, length_bytes};
    memcpy(head + 1, content, length_bytes);
    __atomic_store_n(&header->used_bytes, start + footprint, __ATOMIC_RELEASE);
    return (uint32_t)(start / 8);
}

static uint64_t hash_of(uint32_t kind, const unsigned char *content, uint32_t length_bytes) {
    uint64_t hash = 0xcbf29ce484222325ull ^ kind;  // FNV-1a
    for (uint32_t i = 0; i < length_bytes; i++) hash = (hash ^ content[i]) * 0x100000001b3ull;
    return hash ^ hash >> 32;
}

static uint32_t *place_of(uint32_t kind, const void *content, uint32_t length_bytes) {
    uint64_t at = hash_of(kind, content, length_bytes);
    for (;; at++) {
        uint32_t *place = &table[at & (table_capacity - 1)];
        if (!*place) return place;
        const struct stack_head *head = record_at(*place);
        if (head->kind == kind && head->length_bytes == length_bytes && !memcmp(head + 1, content, length_bytes))
            return place;
    }
}

static bool grow_table(void) {
    uint32_t *old = table, old_capacity = table_capacity;
    uint32_t capacity = old_capacity ? 2 * old_capacity : 1024;
    uint32_t *grown = calloc(capacity, sizeof *grown);
    if (!grown) return false;
    table = grown;
    table_capacity = capacity;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (!old[i]) continue;
        const struct stack_head *head = record_at(old[i]);
        *place_of(head->kind, head + 1, head->length_bytes) = old[i];
    }
    free(old);
    return true;
}

// Returns the number of the record with that content, which is written once.
static uint32_t intern(uint32_t kind, const void *content, uint32_t length_bytes) {
    if (2 * table_count >= table_capacity && !grow_table()) return 0;
    uint32_t *place = place_of(kind, content, length_bytes);
    if (!*place && (*place = append(kind, content, length_bytes))) table_count++;
    return *place;
}

uint32_t stack_log_text(const char *text, uint32_t length_bytes) { return intern(RECORD_TEXT, text, length_bytes); }

// -- mappings --------------------------------------------------------------------------------------------------------

static bool is_mapped(uint64_t address) {
    for (unsigned i = 0; i < mappings_count; i++)
        if (mappings[i].start <= address && address < mappings[i].end) return true;
    return false;
}

static void note_mapping(char *line) {
    struct found {
        uint64_t start, end, offset;
        char name[LINE_BYTES];
    } found;
    char access[8];
    int name_at = 0;
    const char *format = "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n";
    if (sscanf(line, format, &found.start, &found.end, access, &found.offset, &name_at) != 4) return;
    if (access[2] != 'x') return;
    if (is_mapped(found.start) || mappings_count == MAPPINGS_MAX) return;
    char *name = line + (name_at ? name_at : (int)strlen(line));
    name[strcspn(name, "\n")] = 0;
    size_t length = strlen(name);
    memcpy(found.name, name, length);
    if (append(RECORD_MAPPING, &found, (uint32_t)(offsetof(struct found, name) + length)))
        mappings[mappings_count++] = (struct code){found.start, found.end};
}

// -- stacks ----------------------------------------------------------------------------------------------------------

uint32_t stack_log_native(const uint64_t *addresses, uint32_t count) {
    bool unknown = false;
    for (uint32_t i = 0; i < count; i++) unknown |= !is_mapped(addresses[i]);
    if (unknown) mappings_lines(note_mapping);
    return count ? intern(RECORD_NATIVE, addresses, count * (uint32_t)sizeof *addresses) : 0;
}

uint32_t stack_log_python(const struct python_frame *frames, uint32_t count) {
    return count ? intern(RECORD_PYTHON, frames, count * (uint32_t)sizeof *frames) : 0;
}

uint32_t stack_log_stack(const uint32_t parts[2]) {
    uint32_t number = parts[0] || parts[1] ? intern(RECORD_STACK, parts, 2 * (uint32_t)sizeof *parts) : 0;
    if (!number) header->lost++;
    return number;
}

// -- beginning and end -----------------------------------------------------------------------------------------------

static void *map(const char *folder) {
    int access_to = PROT_READ | PROT_WRITE;
    if (!*folder) return mmap(NULL, LOG_BYTES, access_to, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char path[1024];
    int process = (int)getpid();
    snprintf(path, sizeof path, "%s/%d.stacks", folder, process);
    for (int i = 1; access(path, F_OK) == 0; i++) snprintf(path, sizeof path, "%s/%d-%d.stacks", folder, process, i);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return MAP_FAILED;
    void *start = MAP_FAILED;
    if (ftruncate(file, (off_t)LOG_BYTES) == 0) start = mmap(NULL, LOG_BYTES, access_to, MAP_SHARED, file, 0);
    close(file);
    return start;
}

bool stack_log_open(const char *folder) {
    void *start = map(folder);
    if (start == MAP_FAILED) return false;
    madvise(start, LOG_BYTES, MADV_DONTFORK);
    header = start;
    *header = (struct stacks_header){.layout = STACKS_LAYOUT, .used_bytes = sizeof *header};
    header->magic = MAGIC;
    return true;
}

void stack_log_close(void) {
    if (header) munmap(header, LOG_BYTES);
    free(table);
    header = NULL;
    table = NULL;
    table_capacity = table_count = mappings_count = 0;
}

const void *stack_log(void) { return header; }
