#include "arena.h"

#include <stdlib.h>
#include <sys/mman.h>

// Classes are 1, 2, 3, 4 granules and from then on four between powers of two, as in most allocators of today: a slot
// is at most a quarter larger than what was asked for.
static unsigned class_of(uint64_t size_bytes, uint64_t *slot_bytes) {
    uint64_t granules = size_bytes ? (size_bytes + ARENA_GRANULE - 1) / ARENA_GRANULE : 1;
    if (granules <= 4) {
        *slot_bytes = granules * ARENA_GRANULE;
        return (unsigned)granules - 1;
    }
    unsigned log = 63u - (unsigned)__builtin_clzll(granules - 1);
    uint64_t step = 1ull << (log - 2);
    uint64_t steps = (granules + step - 1) / step;  // 5 to 8
    *slot_bytes = steps * step * ARENA_GRANULE;
    return 4 * (log - 1) + (unsigned)(steps - 5);
}

bool arena_open(struct arena *arena, uint64_t base) {
    void *wanted = (void *)base;
    void *start = mmap(wanted, ARENA_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (start == MAP_FAILED) return false;
    if (start != wanted) {  // a kernel before 4.17 takes the flag for a hint
        munmap(start, ARENA_BYTES);
        return false;
    }
    madvise(start, ARENA_BYTES, MADV_DONTDUMP);
    arena->base = base;
    return true;
}

void arena_close(struct arena *arena) {
    if (!arena->base) return;
    munmap((void *)arena->base, ARENA_BYTES);
    for (unsigned i = 0; i < ARENA_CLASSES; i++) free(arena->classes[i].free);
    for (uint32_t i = 0; i < arena->chunks_used; i++)
        if (arena->chunks[i].first == i) free(arena->chunks[i].uses);
    for (uint32_t i = 0; i < arena->chunks_used; i++) arena->chunks[i] = (struct arena_chunk){0};
    for (unsigned i = 0; i < ARENA_CLASSES; i++) arena->classes[i] = (struct arena_class){0};
    arena->base = 0;
    arena->chunks_used = 0;
}

static bool grow(struct arena *arena, struct arena_class *class, uint64_t slot_bytes) {
    uint64_t chunks = (slot_bytes + ARENA_CHUNK - 1) / ARENA_CHUNK;
    if (chunks > ARENA_CHUNKS - arena->chunks_used) return false;
    uint64_t slots = chunks > 1 ? 1 : ARENA_CHUNK / slot_bytes;
    uint32_t first = arena->chunks_used;
    uint32_t *uses = calloc(slots, sizeof *uses);
    if (!uses) return false;
    uint64_t granules = slot_bytes / ARENA_GRANULE;
    uint64_t reciprocal = chunks > 1 ? 0 : (1ull << ARENA_RECIPROCAL_BITS) / granules + 1;
    for (uint64_t i = 0; i < chunks; i++)
        arena->chunks[first + i] = (struct arena_chunk){(uint32_t)granules, first, (uint32_t)slots, reciprocal, uses};
    arena->chunks_used += (uint32_t)chunks;
    class->next = arena->base + first * ARENA_CHUNK;
    class->end = class->next + slots * slot_bytes;
    return true;
}

static uint32_t *use_of(const struct arena *arena, uint64_t address, uint64_t *slot) {
    uint64_t offset = address - arena->base;
    const struct arena_chunk *chunk = &arena->chunks[offset / ARENA_CHUNK];
    if (!chunk->slot_granules) return NULL;
    uint64_t start = chunk->first * ARENA_CHUNK;
    uint64_t number = (offset - start) / ARENA_GRANULE * chunk->reciprocal >> ARENA_RECIPROCAL_BITS;
    if (number >= chunk->slots) return NULL;  // behind the last
    *slot = arena->base + start + number * chunk->slot_granules * ARENA_GRANULE;
    return &chunk->uses[number];
}

uint64_t arena_take(struct arena *arena, uint64_t size_bytes, uint32_t use) {
    uint64_t slot_bytes, slot;
    if (size_bytes > ARENA_BYTES) return 0;
    struct arena_class *class = &arena->classes[class_of(size_bytes, &slot_bytes)];
    uint64_t address;
    if (class->free_count) {
        address = class->free[--class->free_count];
    } else {
        if (class->next == class->end && !grow(arena, class, slot_bytes)) return 0;
        address = class->next;
        class->next += slot_bytes;
    }
    *use_of(arena, address, &slot) = use;
    return address;
}

void arena_end(struct arena *arena, uint64_t address) {
    uint64_t slot;
    *use_of(arena, address, &slot) = ARENA_DEAD;
}

void arena_give(struct arena *arena, uint64_t address, bool reusable) {
    arena_end(arena, address);
    if (!reusable) return;
    uint64_t slot_bytes = arena->chunks[(address - arena->base) / ARENA_CHUNK].slot_granules * ARENA_GRANULE;
    struct arena_class *class = &arena->classes[class_of(slot_bytes, &slot_bytes)];
    if (class->free_count == class->free_capacity) {
        uint32_t capacity = class->free_capacity ? 2 * class->free_capacity : 64;
        uint64_t *free_slots = realloc(class->free, capacity * sizeof *free_slots);
        if (!free_slots) return;  // this slot is never used again
        class->free = free_slots;
        class->free_capacity = capacity;
    }
    class->free[class->free_count++] = address;
}

uint32_t arena_find(const struct arena *arena, uint64_t address, uint64_t *slot) {
    if (!arena->base || address - arena->base >= ARENA_BYTES) return 0;
    const uint32_t *use = use_of(arena, address, slot);
    return use ? *use : 0;
}
