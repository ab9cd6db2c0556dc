#include "reach/heap_python.h"

#include <stdbool.h>

#include "reach/heap_blocks.h"

struct pool {
    uint32_t used, padding;
    uint64_t free;  // a list, through the first word of each
    uint64_t next, previous;
    uint32_t arena, class;
    uint32_t next_offset, next_offset_max;  // where the next block is that was never handed out, and the last
};

enum {
    HEADER_BYTES = sizeof(struct pool),
    STEP_BYTES = 16,
    CLASSES = 512 / STEP_BYTES,
    POOL_BYTES = 1 << 14,
    OLD_POOL_BYTES = 1 << 12,
    BLOCKS_MAX = POOL_BYTES / STEP_BYTES,
};

static unsigned char is_free[BLOCKS_MAX];

// Reads which blocks are free; returns how many were ever handed out, or 0 where the header contradicts itself.
static unsigned read_pool(uint64_t start, uint64_t pool_bytes) {
    const struct pool *pool = (const struct pool *)start;
    uint64_t block_bytes = (pool->class + 1ull) * STEP_BYTES;
    if (pool->class >= CLASSES || pool->next_offset_max != pool_bytes - block_bytes) return 0;
    if (pool->next_offset < HEADER_BYTES + block_bytes || pool->next_offset > pool_bytes) return 0;
    if ((pool->next_offset - HEADER_BYTES) % block_bytes) return 0;
    unsigned handed_out = (unsigned)((pool->next_offset - HEADER_BYTES) / block_bytes), free_count = 0;
    for (unsigned i = 0; i < handed_out; i++) is_free[i] = 0;
    for (uint64_t at = pool->free; at; at = *(const uint64_t *)at) {
        uint64_t offset = at - start - HEADER_BYTES;
        if (offset % block_bytes || offset / block_bytes >= handed_out || is_free[offset / block_bytes]) return 0;
        is_free[offset / block_bytes] = 1;
        free_count++;
    }
    return pool->used + free_count == handed_out ? handed_out : 0;
}

uint64_t heap_python_pool(uint64_t start, uint64_t end) {
    static const uint64_t SIZES[] = {POOL_BYTES, OLD_POOL_BYTES};
    for (unsigned i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        if (start % SIZES[i] == 0 && end - start >= SIZES[i] && read_pool(start, SIZES[i])) return SIZES[i];
    return 0;
}

void heap_python_enter(struct heap *heap, uint64_t start) {
    const struct pool *pool = (const struct pool *)start;
    uint64_t block_bytes = (pool->class + 1ull) * STEP_BYTES, pool_bytes = pool->next_offset_max + block_bytes;
    unsigned handed_out = read_pool(start, pool_bytes);
    uint64_t block = start + HEADER_BYTES;
    heap_block(heap, start, block, false);
    for (unsigned i = 0; i < handed_out; i++, block += block_bytes)
        heap_block(heap, block, block + block_bytes, !is_free[i]);
    if (block < start + pool_bytes) heap_block(heap, block, start + pool_bytes, false);
}
