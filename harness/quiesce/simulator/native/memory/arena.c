#include "memory/arena.h"

#include <stdlib.h>
#include <string.h>
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

// How many free slots of a class wait. A freed block of 1 MiB and more keeps two pages of its memory (poison.c).
static uint32_t kept_of(uint64_t slot_bytes) {
    enum { KEPT_MAX = 1024, LARGE_BYTES = 1 << 20, LARGE_RESIDENT_BYTES = 1 << 13, RESIDENT_BYTES_MAX = 4 << 20 };
    const uint64_t address_bytes_max = 4ull << 30;
    uint64_t resident_bytes = slot_bytes < LARGE_BYTES ? slot_bytes : LARGE_RESIDENT_BYTES, kept = KEPT_MAX;
    if (kept > RESIDENT_BYTES_MAX / resident_bytes) kept = RESIDENT_BYTES_MAX / resident_bytes;
    if (kept > address_bytes_max / slot_bytes) kept = address_bytes_max / slot_bytes;
    return kept ? (uint32_t)kept : 1;
}

bool arena_open(struct arena *arena, uint64_t base, bool is_late) {
    void *start = mmap((void *)base, ARENA_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (start == MAP_FAILED) return false;
    madvise(start, ARENA_BYTES, MADV_DONTDUMP);
    arena->base = base;
    arena->is_late = is_late;
    return true;
}

void arena_close(struct arena *arena) {
    if (!arena->base) return;
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
    uint32_t number = (uint32_t)(class - arena->classes);
    uint64_t reciprocal = chunks > 1 ? 0 : (1ull << ARENA_RECIPROCAL_BITS) / granules + 1;
    for (uint64_t i = 0; i < chunks; i++)
        arena->chunks[first + i] =
            (struct arena_chunk){(uint32_t)granules, first, (uint32_t)slots, number, reciprocal, uses};
    arena->chunks_used += (uint32_t)chunks;
    class->next = (struct arena_slot){arena->base + first * ARENA_CHUNK, uses};
    class->end = class->next.start + slots * slot_bytes;
    class->kept = arena->is_late ? kept_of(slot_bytes) : 0;
    return true;
}

static struct arena_slot take_free(const struct arena *arena, struct arena_class *class) {
    uint32_t place = arena->is_late ? class->free_first++ : class->free_first + class->free_count - 1;
    class->free_first &= class->free_capacity - 1;
    class->free_count--;
    return class->free[place & (class->free_capacity - 1)];
}

static inline __attribute__((always_inline)) uint64_t take(struct arena *arena, uint64_t size_bytes, uint32_t use,
                                                           unsigned from) {
    uint64_t slot_bytes;
    if (size_bytes > ARENA_BYTES) return 0;
    struct arena_class *class = &arena->classes[from + class_of(size_bytes, &slot_bytes)];
    struct arena_slot slot;
    if (class->free_count > class->kept) {
        slot = take_free(arena, class);
    } else if (class->next.start == class->end && !grow(arena, class, slot_bytes)) {
        if (!class->free_count) return 0;
        slot = take_free(arena, class);
    } else {
        slot = class->next;
        class->next.start += slot_bytes;
        class->next.use++;
    }
    *slot.use = use;
    return slot.start;
}

uint64_t arena_take(struct arena *arena, uint64_t size_bytes, uint32_t use) { return take(arena, size_bytes, use, 0); }

uint64_t arena_take_apart(struct arena *arena, uint64_t size_bytes, uint32_t use) {
    return take(arena, size_bytes, use, ARENA_APART);
}

struct arena_slot arena_find(const struct arena *arena, uint64_t address) {
    uint64_t offset = address - arena->base;
    if (!arena->base || offset >= ARENA_BYTES) return (struct arena_slot){0};
    const struct arena_chunk *chunk = &arena->chunks[offset / ARENA_CHUNK];
    if (!chunk->slot_granules) return (struct arena_slot){0};
    uint64_t start = chunk->first * ARENA_CHUNK;
    uint64_t number = (offset - start) / ARENA_GRANULE * chunk->reciprocal >> ARENA_RECIPROCAL_BITS;
    if (number >= chunk->slots) return (struct arena_slot){0};  // behind the last
    uint64_t begin = arena->base + start + number * chunk->slot_granules * ARENA_GRANULE;
    return (struct arena_slot){begin, &chunk->uses[number]};
}

void arena_give(struct arena *arena, struct arena_slot slot, bool reusable) {
    arena_end(slot);
    if (!reusable) return;
    struct arena_class *class = &arena->classes[arena->chunks[(slot.start - arena->base) / ARENA_CHUNK].class];
    if (class->free_count == class->free_capacity) {
        uint32_t capacity = class->free_capacity ? 2 * class->free_capacity : 64;
        struct arena_slot *free_slots = malloc(capacity * sizeof *free_slots);
        if (!free_slots) return;  // this slot is never used again
        for (uint32_t i = 0; i < class->free_count; i++)
            free_slots[i] = class->free[(class->free_first + i) & (class->free_capacity - 1)];
        free(class->free);
        class->free = free_slots;
        class->free_first = 0;
        class->free_capacity = capacity;
    }
    class->free[(class->free_first + class->free_count++) & (class->free_capacity - 1)] = slot;
}

bool arena_is_shared;

void arena_clear(uint64_t address, uint64_t size_bytes) {
    enum { LARGE_BYTES = 1 << 20, PAGE_BYTES = 4096 };
    uint64_t end = address + size_bytes, first = (address + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1ull);
    uint64_t behind = end & ~(PAGE_BYTES - 1ull);
    // Private anonymous memory reads as zeros afterwards (madvise(2)); pages that somebody locked stay as they are.
    bool keeps = size_bytes < LARGE_BYTES || arena_is_shared;
    if (keeps || madvise((void *)first, behind - first, MADV_DONTNEED)) first = behind = end;
    memset((void *)address, 0, first - address);
    memset((void *)behind, 0, end - behind);
}
