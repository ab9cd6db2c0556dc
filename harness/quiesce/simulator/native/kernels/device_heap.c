#include "kernels/device_heap.h"

#include <stdlib.h>

#include "kernels/watch.h"

enum { HEAP_BYTES = 8 << 20, ALIGNMENT = 16, NEAR_BYTES = 4096, FREED_MAX = 256, FREED_BYTES_MAX = 1 << 16 };

// What lies before each block.
static struct block {
    struct block *next, **place;
    uint64_t bytes;
    struct other_access made;  // by whom
} __attribute__((aligned(ALIGNMENT))) * blocks;
static uint64_t used_bytes, calls;
// The last ones that were freed, and are not too long: their memory is kept, so that a use of it is known.
static struct block *freed[FREED_MAX];
static unsigned freed_next;

static uint64_t take(uint64_t bytes, const struct other_access *made) {
    if (!bytes || bytes > HEAP_BYTES - used_bytes) return 0;
    struct block *block = malloc(sizeof *block + bytes);
    if (!block) return 0;
    *block = (struct block){.next = blocks, .place = &blocks, .bytes = bytes, .made = *made};
    if (blocks) blocks->place = &block->next;
    blocks = block;
    used_bytes += bytes;
    return (uint64_t)(block + 1);
}

uint64_t quiesce_kernel_malloc(struct kernel_context *context, uint64_t bytes, uint32_t site, uint32_t thread) {
    struct other_access made = {.is_there = true, .site = site, .code = running_code};
    thread_index(thread, context->block, made.thread);
    watch_hold();
    calls++;
    uint64_t taken = take(bytes, &made);
    watch_release();
    return taken;
}

static void take_out(struct block *block) {
    *block->place = block->next;
    if (block->next) block->next->place = block->place;
    used_bytes -= block->bytes;
}

static void give_back(struct block *block) {
    take_out(block);
    if (block->bytes > FREED_BYTES_MAX) {
        free(block);
        return;
    }
    free(freed[freed_next]);
    freed[freed_next] = block;
    freed_next = (freed_next + 1) % FREED_MAX;
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

static uint64_t distance(const struct block *block, uint64_t address) {
    uint64_t start = (uint64_t)(block + 1);
    if (address < start) return start - address;
    return address - start < block->bytes ? 0 : address - start - block->bytes;
}

enum seen device_heap_miss(uint64_t address, struct wrong_access *wrong) {
    const struct block *nearest = NULL;
    enum seen seen = SEEN_KERNEL_OUTSIDE_HEAP;
    for (const struct block *each = blocks; each; each = each->next)
        if (!nearest || distance(each, address) < distance(nearest, address)) nearest = each;
    for (unsigned i = 0; i < FREED_MAX; i++)
        if (freed[i] && !distance(freed[i], address)) {
            nearest = freed[i];
            seen = SEEN_KERNEL_FREED_IN_HEAP;
        }
    if (!nearest || distance(nearest, address) > NEAR_BYTES) return SEEN_NOTHING;
    wrong->missed.start = (uint64_t)(nearest + 1);
    wrong->missed.bytes = nearest->bytes;
    wrong->other = nearest->made;
    return seen;
}

void device_heap_close(void) {
    while (blocks) {
        struct block *block = blocks;
        take_out(block);
        free(block);
    }
    for (unsigned i = 0; i < FREED_MAX; i++) {
        free(freed[i]);
        freed[i] = NULL;
    }
}
