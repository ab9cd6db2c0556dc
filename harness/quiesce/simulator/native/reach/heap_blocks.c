#include "reach/heap_blocks.h"

#include <stddef.h>
#include <sys/mman.h>

#include "machine/mappings.h"

enum { HEAPS_MAX = 1 << 18, WORD_BITS = 64 };

struct heap {
    uint64_t start, end;
    // With a bit for each 16 bytes; NULL for a heap of one block.
    uint64_t *begins, *used, *reached;
    uint64_t *crossing;  // for each page, the block that covers its first byte, or 0: without it, finding would be slow
    bool is_reached;     // of a heap of one block
};

static struct heap *heaps;
static unsigned heaps_count;
static uint64_t used_count;

static void *take_memory(uint64_t size_bytes) {
    void *start = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

static uint64_t bit_of(const struct heap *heap, uint64_t address) { return (address - heap->start) / BLOCK_ALIGNMENT; }
static uint64_t page_of(const struct heap *heap, uint64_t address) { return (address - heap->start) / PAGE_BYTES; }
static bool test(const uint64_t *bits, uint64_t bit) { return bits[bit / WORD_BITS] >> bit % WORD_BITS & 1; }
static void set(uint64_t *bits, uint64_t bit) { bits[bit / WORD_BITS] |= 1ull << bit % WORD_BITS; }

static struct heap *add(uint64_t start, uint64_t end) {
    if (!heaps) heaps = take_memory(HEAPS_MAX * sizeof *heaps);
    if (!heaps || heaps_count == HEAPS_MAX) return NULL;
    heaps[heaps_count] = (struct heap){.start = start, .end = end};
    return &heaps[heaps_count++];
}

struct heap *heap_add(uint64_t start, uint64_t end) {
    uint64_t words = (end - start) / BLOCK_ALIGNMENT / WORD_BITS + 1, pages = (end - start) / PAGE_BYTES + 1;
    uint64_t *bits = take_memory((3 * words + pages) * sizeof *bits);
    struct heap *heap = bits ? add(start, end) : NULL;
    if (!heap) return NULL;
    heap->begins = bits;
    heap->used = bits + words;
    heap->reached = bits + 2 * words;
    heap->crossing = bits + 3 * words;
    return heap;
}

void heap_block(struct heap *heap, uint64_t start, uint64_t end, bool in_use) {
    set(heap->begins, bit_of(heap, start));
    if (in_use) {
        set(heap->used, bit_of(heap, start));
        used_count++;
    }
    for (uint64_t page = page_of(heap, start) + 1; heap->start + page * PAGE_BYTES < end; page++)
        heap->crossing[page] = start;
}

bool heap_add_block(uint64_t start, uint64_t end) {
    if (!add(start, end)) return false;
    used_count++;
    for (struct heap *heap = &heaps[heaps_count - 1]; heap > heaps && heap[-1].start > start; heap--) {
        struct heap moved = heap[-1];
        heap[-1] = *heap;
        *heap = moved;
    }
    return true;
}

uint64_t blocks_in_use(void) { return used_count; }

static struct heap *heap_at(uint64_t address) {
    static struct heap *last;
    if (last && last->start <= address && address < last->end) return last;
    if (!heaps_count || address < heaps->start || address >= heaps[heaps_count - 1].end) return NULL;
    unsigned low = 0, high = heaps_count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (heaps[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < heaps_count && heaps[low].start <= address ? last = &heaps[low] : NULL;
}

// Returns where the block begins that an address lies in, or 0.
static uint64_t begin_of(const struct heap *heap, uint64_t address) {
    uint64_t bit = bit_of(heap, address), first = bit_of(heap, heap->start + page_of(heap, address) * PAGE_BYTES);
    for (uint64_t word = bit / WORD_BITS;; word--) {
        uint64_t bits = heap->begins[word];
        if (word == bit / WORD_BITS) bits &= UINT64_MAX >> (WORD_BITS - 1 - bit % WORD_BITS);
        if (bits) {
            uint64_t found = word * WORD_BITS + (WORD_BITS - 1 - (uint64_t)__builtin_clzll(bits));
            return heap->start + found * BLOCK_ALIGNMENT;
        }
        if (word <= first / WORD_BITS) return heap->crossing[page_of(heap, address)];
    }
}

static uint64_t end_of(const struct heap *heap, uint64_t start) {
    uint64_t bit = bit_of(heap, start) + 1, last = bit_of(heap, heap->end);
    for (uint64_t word = bit / WORD_BITS; word <= last / WORD_BITS; word++) {
        uint64_t bits = heap->begins[word];
        if (word == bit / WORD_BITS) bits &= UINT64_MAX << bit % WORD_BITS;
        if (!bits) continue;
        uint64_t end = heap->start + (word * WORD_BITS + (uint64_t)__builtin_ctzll(bits)) * BLOCK_ALIGNMENT;
        return end < heap->end ? end : heap->end;
    }
    return heap->end;
}

bool block_reach(uint64_t address, struct block_range *block) {
    struct heap *heap = heap_at(address);
    if (!heap) return false;
    if (!heap->begins) {
        if (heap->is_reached) return false;
        *block = (struct block_range){heap->start, heap->end};
        return heap->is_reached = true;
    }
    uint64_t start = begin_of(heap, address);
    if (!start) return false;
    uint64_t bit = bit_of(heap, start);
    if (!test(heap->used, bit) || test(heap->reached, bit)) return false;
    set(heap->reached, bit);
    *block = (struct block_range){start, end_of(heap, start)};
    return true;
}

bool block_lies_at(uint64_t address) { return heap_at(address) != NULL; }

bool block_was_reached(uint64_t address) {
    const struct heap *heap = heap_at(address);
    if (!heap) return false;
    if (!heap->begins) return heap->is_reached;
    uint64_t start = begin_of(heap, address);
    return start && test(heap->reached, bit_of(heap, start));
}

void blocks_unreached(void (*see)(uint64_t start, uint64_t end)) {
    for (struct heap *heap = heaps; heap < heaps + heaps_count; heap++) {
        if (!heap->begins) {
            if (!heap->is_reached) see(heap->start, heap->end);
            continue;
        }
        for (uint64_t word = 0; word <= bit_of(heap, heap->end) / WORD_BITS; word++) {
            for (uint64_t left = heap->used[word] & ~heap->reached[word]; left; left &= left - 1) {
                uint64_t bit = word * WORD_BITS + (uint64_t)__builtin_ctzll(left);
                uint64_t start = heap->start + bit * BLOCK_ALIGNMENT;
                see(start, end_of(heap, start));
            }
        }
    }
}
