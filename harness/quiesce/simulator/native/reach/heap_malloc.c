#include "reach/heap_malloc.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "machine/mappings.h"
#include "machine/own_heap.h"
#include "reach/heap_blocks.h"

#define FLAGS 7ull
enum {
    PREVIOUS_IN_USE = 1,
    IS_MAPPED = 2,
    HEADER_BYTES = 16,
    CHUNK_BYTES_MIN = 32,
    FENCE_BYTES = 16,      // what ends a heap that could not be extended
    HEAP_INFO_BYTES = 32,  // at least; it grew with a release
    FIRST_CHUNK_MAX = PAGE_BYTES,  // how far the first chunk of another arena's heap may lie behind its beginning
};

struct chunk {
    uint64_t previous_bytes, head;
    uint64_t next, key;  // of one that is free
};

struct heap_info {  // malloc/arena.c
    uint64_t arena, previous, size_bytes;
};

// What mallinfo2() says, which glibc has from 2.33 on.
struct counts {
    size_t arena, ordblks, smblks, mappings, mappings_bytes, rest[5];
};

static uint64_t cache_key;  // 0: not known
static struct counts counts;
static bool is_counted;

// The kernel copies, for the block is free: neither a compiler nor a sanitizer may take that for a mistake.
static uint64_t key_of_free(uint64_t address) {
    uint64_t key = 0;
    struct iovec to = {&key, sizeof key}, from = {(void *)(address + sizeof key), sizeof key};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof key ? key : 0;
}

void heap_malloc_prepare(void) {
    enum { MARK = 0x51 };
    malloc_trim(0);  // "malloc_consolidate" comes first, for every arena (malloc/malloc.c, mtrim())
    volatile uint64_t *block = malloc(CHUNK_BYTES_MIN - sizeof(uint64_t));
    if (!block) return;
    block[1] = MARK;
    uint64_t address = (uint64_t)block;
    free((void *)block);
    uint64_t key = key_of_free(address);
    cache_key = key == MARK ? 0 : key;  // no thread has a cache
    struct counts (*count)(void) = (struct counts(*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
    is_counted = count != NULL;
    if (count) counts = count();
}

static uint64_t size_of(const struct chunk *chunk) { return chunk->head & ~FLAGS; }

static bool is_cached(const struct chunk *chunk) { return cache_key && chunk->key == cache_key; }

// Walks from one chunk to the end of its heap; enters blocks where `heap` is given. Returns where the last chunk ends,
// and 0 where what lies there is no such row.
static uint64_t walk(uint64_t first, uint64_t end, struct heap *heap) {
    for (uint64_t at = first; at + HEADER_BYTES <= end;) {
        const struct chunk *chunk = (const struct chunk *)at;
        uint64_t size_bytes = size_of(chunk), next = at + size_bytes;
        if (size_bytes == FENCE_BYTES || (!size_bytes && at + FENCE_BYTES >= end)) return next;
        if (size_bytes < CHUNK_BYTES_MIN || size_bytes % HEADER_BYTES || size_bytes > end - at) return 0;
        if (chunk->head & IS_MAPPED) return 0;
        bool is_last = next == end;  // the top chunk, of which nothing was given out
        if (!is_last && next + HEADER_BYTES > end) return 0;
        bool in_use = !is_last && ((const struct chunk *)next)->head & PREVIOUS_IN_USE && !is_cached(chunk);
        if (in_use && heap) in_use = !own_heap_has(at + HEADER_BYTES, size_bytes - sizeof chunk->head);
        if (heap) heap_block(heap, at + HEADER_BYTES, is_last ? next : next + HEADER_BYTES, in_use);
        if (is_last) return next;
        at = next;
    }
    return 0;
}

static uint64_t enter(uint64_t first, uint64_t end) {
    uint64_t last = walk(first, end, NULL);
    struct heap *heap = last ? heap_add(first, last) : NULL;
    if (heap) walk(first, end, heap);
    return heap ? last : 0;
}

uint64_t heap_malloc_walk_first(uint64_t start, uint64_t end) {
    const struct chunk *first = (const struct chunk *)start;
    uint64_t known = first->head & PREVIOUS_IN_USE ? enter(start, end) : 0;
    return known ? known : start;
}

// Whether a heap of another arena begins here: its arena lies in such a heap, which says the same.
static bool is_other(const struct heap_info *info, uint64_t start, uint64_t end) {
    const uint64_t mask = ~(uint64_t)(OTHER_HEAP_ALIGNMENT - 1);
    if (!info->arena || info->arena % HEADER_BYTES || info->previous & ~mask) return false;
    if (info->size_bytes % PAGE_BYTES || !info->size_bytes || info->size_bytes > OTHER_HEAP_ALIGNMENT) return false;
    if (info->size_bytes > end - start) return false;
    bool is_own = (info->arena & mask) == start;
    return is_own ? !info->previous && info->arena - start < FIRST_CHUNK_MAX : info->previous != 0;
}

uint64_t heap_malloc_walk_other(uint64_t start, uint64_t end) {
    if (start % OTHER_HEAP_ALIGNMENT || end - start < PAGE_BYTES) return 0;
    const struct heap_info *info = (const struct heap_info *)start;
    if (!is_other(info, start, end)) return 0;
    uint64_t last = start + info->size_bytes;
    // Behind its arena, whose size differs from release to release.
    for (uint64_t first = start + HEAP_INFO_BYTES; first < start + FIRST_CHUNK_MAX; first += HEADER_BYTES) {
        if (((const struct chunk *)first)->head & PREVIOUS_IN_USE && enter(first, last)) return last;
    }
    return 0;
}

uint64_t heap_malloc_mapping(uint64_t start, uint64_t end) {
    const struct chunk *chunk = (const struct chunk *)start;
    if (end - start < PAGE_BYTES || (chunk->head & FLAGS) != IS_MAPPED || chunk->previous_bytes) return 0;
    uint64_t size_bytes = size_of(chunk);
    return size_bytes && size_bytes % PAGE_BYTES == 0 && size_bytes <= end - start ? start + size_bytes : 0;
}

bool heap_malloc_mapping_is_own(uint64_t start, uint64_t end) {
    return own_heap_has(start + HEADER_BYTES, end - start - HEADER_BYTES);
}

bool heap_malloc_mappings_agree(unsigned count, uint64_t size_bytes) {
    return is_counted && counts.mappings == count && counts.mappings_bytes == size_bytes;
}
