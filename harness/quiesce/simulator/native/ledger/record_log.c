#include "ledger/record_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "machine/disk.h"

enum { STEP_BYTES = 1 << 16 };

static struct record_head *record_at(const struct record_log *log, uint32_t number) {
    return (struct record_head *)((char *)log->header + 8ull * number);
}

static bool has_room(struct record_log *log, uint64_t end) {
    if (end <= log->reserved_bytes) return true;
    uint64_t bytes = (end - log->reserved_bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    if (bytes > RECORD_LOG_BYTES - log->reserved_bytes) bytes = RECORD_LOG_BYTES - log->reserved_bytes;
    if (!log->is_full && disk_reserve(log->path, log->header, log->reserved_bytes, bytes)) {
        log->reserved_bytes += bytes;
        return true;
    }
    log->is_full = true;
    ledger_miss(log->full);
    return false;
}

uint32_t record_log_append(struct record_log *log, uint32_t kind, const void *content, uint32_t length_bytes) {
    uint64_t footprint = (sizeof(struct record_head) + length_bytes + 7) / 8 * 8, start = log->header->used_bytes;
    if (footprint > RECORD_LOG_BYTES - start || !has_room(log, start + footprint)) return 0;
    struct record_head *head = (struct record_head *)((char *)log->header + start);
    *head = (struct record_head){kind, length_bytes};
    memcpy(head + 1, content, length_bytes);
    __atomic_store_n(&log->header->used_bytes, start + footprint, __ATOMIC_RELEASE);
    return (uint32_t)(start / 8);
}

static uint64_t hash_of(uint32_t kind, const unsigned char *content, uint32_t length_bytes) {
    uint64_t hash = 0xcbf29ce484222325ull ^ kind;  // FNV-1a
    for (uint32_t i = 0; i < length_bytes; i++) hash = (hash ^ content[i]) * 0x100000001b3ull;
    return hash ^ hash >> 32;
}

static uint32_t *place_of(const struct record_log *log, uint32_t kind, const void *content, uint32_t length_bytes) {
    uint64_t at = hash_of(kind, content, length_bytes);
    for (;; at++) {
        uint32_t *place = &log->table[at & (log->table_capacity - 1)];
        if (!*place) return place;
        const struct record_head *head = record_at(log, *place);
        if (head->kind == kind && head->length_bytes == length_bytes && !memcmp(head + 1, content, length_bytes))
            return place;
    }
}

static bool grow_table(struct record_log *log) {
    uint32_t *old = log->table, old_capacity = log->table_capacity;
    uint32_t capacity = old_capacity ? 2 * old_capacity : 1024;
    uint32_t *grown = calloc(capacity, sizeof *grown);
    if (!grown) return false;
    log->table = grown;
    log->table_capacity = capacity;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (!old[i]) continue;
        const struct record_head *head = record_at(log, old[i]);
        *place_of(log, head->kind, head + 1, head->length_bytes) = old[i];
    }
    free(old);
    return true;
}

uint32_t record_log_intern(struct record_log *log, uint32_t kind, const void *content, uint32_t length_bytes) {
    if (2 * log->table_count >= log->table_capacity && !grow_table(log)) return 0;
    uint32_t *place = place_of(log, kind, content, length_bytes);
    if (!*place && (*place = record_log_append(log, kind, content, length_bytes))) log->table_count++;
    return *place;
}

static void *map(const char *path) {
    int access_to = PROT_READ | PROT_WRITE;
    if (!*path) return mmap(NULL, RECORD_LOG_BYTES, access_to, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = 0;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return MAP_FAILED;
    void *start = MAP_FAILED;
    if (disk_allows(RECORD_LOG_BYTES) && ftruncate(file, (off_t)RECORD_LOG_BYTES) == 0)
        start = mmap(NULL, RECORD_LOG_BYTES, access_to, MAP_SHARED, file, 0);
    close(file);
    if (start != MAP_FAILED && disk_reserve(path, start, 0, STEP_BYTES)) return start;
    if (start != MAP_FAILED) munmap(start, RECORD_LOG_BYTES);
    unlink(path);
    if (!errno) errno = ENOSPC;
    return MAP_FAILED;
}

bool record_log_open(struct record_log *log, const char *path, uint64_t magic, uint32_t layout, enum full full) {
    void *start = map(path);
    if (start == MAP_FAILED) {
        ledger_miss(full);
        return false;
    }
    madvise(start, RECORD_LOG_BYTES, MADV_DONTFORK);
    *log = (struct record_log){
        .header = start, .reserved_bytes = *path ? STEP_BYTES : RECORD_LOG_BYTES, .full = full};
    strncpy(log->path, path, sizeof log->path - 1);
    *log->header = (struct record_header){.layout = layout, .used_bytes = sizeof *log->header};
    log->header->magic = magic;
    return true;
}

void record_log_close(struct record_log *log) {
    if (log->header) munmap(log->header, RECORD_LOG_BYTES);
    free(log->table);
    *log = (struct record_log){0};
}
