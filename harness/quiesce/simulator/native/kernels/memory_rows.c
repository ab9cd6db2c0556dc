#include "kernels/memory_rows.h"

#include <sys/mman.h>

enum { ROWS_MAX = 1 << 17, CHUNKS = 1 << 18, CHUNKS_MAX = CHUNKS / 4 * 3, NEIGHBOURS = 32, ATTEMPTS = 256 };

// Chunks that follow each other in memory do so here, for as long as they are neighbours.
static struct rows {
    struct row_use rows[ROWS_MAX];
    struct chunk chunks[CHUNKS];
} *all;
static uint32_t row_count, chunk_count, begun;

bool memory_rows_begin(uint32_t launch) {
    row_count = NO_ROW + 1;
    chunk_count = 0;
    begun = launch;
    if (all) return true;
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, how, -1, 0);
    if (memory == MAP_FAILED) return false;
    madvise(memory, sizeof *all, MADV_DONTDUMP);
    all = memory;
    return true;
}

struct chunk *memory_chunk(uint64_t address) {
    uint64_t number = address / CHUNK_BYTES, group = number / NEIGHBOURS * 0x9e3779b97f4a7c15 >> 32;
    uint64_t place = (number + (group >> 16)) % NEIGHBOURS;
    for (unsigned i = 0; i < ATTEMPTS && chunk_count < CHUNKS_MAX; i++) {
        struct chunk *chunk = &all->chunks[(group + i) * NEIGHBOURS % CHUNKS + place];
        if (chunk->begun == begun && chunk->number == number) return chunk;
        if (chunk->begun == begun) continue;
        chunk_count++;
        *chunk = (struct chunk){.number = number, .begun = begun};
        return chunk;
    }
    return NULL;
}

uint32_t memory_row_add(const struct row_use *row) {
    if (row_count == ROWS_MAX) return NO_ROW;
    all->rows[row_count] = *row;
    return row_count++;
}

const struct row_use *memory_row(uint32_t number) { return &all->rows[number]; }

void memory_rows_close(void) {
    if (all) munmap(all, sizeof *all);
    all = NULL;
}

void memory_rows_range(void (*add)(const void *start, size_t bytes)) {
    if (all) add(all, sizeof *all);
}
