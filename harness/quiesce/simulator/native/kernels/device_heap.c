#include "kernels/device_heap.h"

#include <stdlib.h>

#include "kernels/watch.h"

enum { HEAP_BYTES = 8 << 20, ALIGNMENT = 16 };

// What lies before each block.
static struct block {
    struct block *next, **place;
    uint64_t bytes;
    uint64_t reserved;
} *blocks;
static uint64_t used_bytes, calls;

_Static_assert(sizeof(struct block) % ALIGNMENT == 0, "blocks are aligned as a device's are");

static uint64_t take(uint64_t bytes) {
    if (!bytes || bytes > HEAP_BYTES - used_bytes) return 0;
    struct block *block = malloc(sizeof *block + bytes);
    if (!block) return 0;
    *block = (struct block){.next = blocks, .place = &blocks, .bytes = bytes};
    if (blocks) blocks->place = &block->next;
    blocks = block;
    used_bytes += bytes;
    return (uint64_t)(block + 1);
}

uint64_t quiesce_kernel_malloc(struct kernel_context *context, uint64_t bytes) {
    (void)context;
    watch_hold();
    calls++;
    uint64_t taken = take(bytes);
    watch_release();
    return taken;
}

static void give_back(struct block *block) {
    *block->place = block->next;
    if (block->next) block->next->place = block->place;
    used_bytes -= block->bytes;
    free(block);
}

void quiesce_kernel_free(struct kernel_context *context, uint64_t address) {
    (void)context;
    watch_hold();
    calls++;
    struct block *block = blocks;
    while (block && (uint64_t)(block + 1) != address) block = block->next;
    if (block) give_back(block);
    watch_release();
}

bool device_heap_covers(uint64_t address, uint64_t bytes) {
    const struct block *block = blocks;
    while (block && address - (uint64_t)(block + 1) >= block->bytes) block = block->next;
    return block && bytes <= block->bytes - (address - (uint64_t)(block + 1));
}

uint64_t device_heap_calls(void) { return calls; }

void device_heap_close(void) {
    while (blocks) give_back(blocks);
}
