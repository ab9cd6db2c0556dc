// Address space by size class: which addresses of one memory are in use, and what lies at an address.
//
// An arena has address space at a base and hands out slots. Slots of one class share chunks of 64 MiB;
// larger ones are runs of chunks. A slot stays where it is for ever, so that an address can be told apart that was
// used before from one that never was. Capacity is not counted here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
enum { ARENA_CLASSES = 256, ARENA_CHUNKS = 1 << 9 };
#else
enum { ARENA_CLASSES = 256, ARENA_CHUNKS = 1 << 14 };
#endif
#define ARENA_GRANULE 512ull                 // slots begin at multiples of it
#define ARENA_CHUNK (64ull << 20)
#define ARENA_BYTES (ARENA_CHUNK * ARENA_CHUNKS)  // 1 TiB; only touched pages cost anything
#define ARENA_DEAD UINT32_MAX
enum { ARENA_APART = ARENA_CLASSES / 2 };  // from this class on slots are those that were taken apart
// 2^34 / d + 1, times n, is n / d in its upper bits: exact, for neither n nor d exceeds the 2^17 granules of a chunk.
#define ARENA_RECIPROCAL_BITS 34

struct arena_chunk {
    uint32_t slot_granules;
    uint32_t first;  // the chunk in which the first slot begins
    uint32_t slots;
    uint32_t class;
    uint64_t reciprocal;  // of slot_granules, for a division that every call would wait for
    uint32_t *uses;  // of that chunk, for each slot: 0 never used, ARENA_DEAD not any more, else what take() was given
};

// A slot: where it begins, and its use (NULL where no slot is). Who has looked it up once does not divide again.
struct arena_slot {
    uint64_t start;
    uint32_t *use;
};

struct arena {
    uint64_t base;
    bool is_late;  // of free slots the one is taken first that was given back first, and not the last
    uint32_t chunks_used;
    struct arena_class {
        struct arena_slot *free;  // a ring
        uint32_t free_first, free_count, free_capacity;
        uint32_t kept;  // so many free slots wait before one is taken again
        struct arena_slot next;  // slots that were never used
        uint64_t end;
    } classes[ARENA_CLASSES];
    struct arena_chunk chunks[ARENA_CHUNKS];
};

// Takes its part of the addresses that were reserved (base.h). Returns false where the system refuses it. With
// `is_late` a slot is taken again once many others of its class were given back, so that a use of what was freed is
// seen as such; how many is bounded by what they hold of memory and of addresses, and by the caches of a processor.
bool arena_open(struct arena *arena, uint64_t base, bool is_late);
void arena_close(struct arena *arena);

// Takes a slot of at least size_bytes. Returns its address, or 0 where address space or memory runs out.
uint64_t arena_take(struct arena *arena, uint64_t size_bytes, uint32_t use);

// The same, of slots that nothing else is ever in, and whether an address lies among those.
uint64_t arena_take_apart(struct arena *arena, uint64_t size_bytes, uint32_t use);

static inline bool arena_is_apart(const struct arena *arena, uint64_t address) {
    uint64_t offset = address - arena->base;
    return offset < ARENA_BYTES && arena->chunks[offset / ARENA_CHUNK].class >= ARENA_APART;
}

// The slot in which an address lies.
struct arena_slot arena_find(const struct arena *arena, uint64_t address);

// Ends the use of a slot, which is not taken again before it is given back.
static inline void arena_end(struct arena_slot slot) { *slot.use = ARENA_DEAD; }

// Gives a slot back; a `reusable` one may be taken again.
void arena_give(struct arena *arena, struct arena_slot slot, bool reusable);

// Where the run of chunks begins that an address in use lies in: a slot never reaches beyond one.
static inline uint64_t arena_run(const struct arena *arena, uint64_t address) {
    return arena->base + arena->chunks[(address - arena->base) / ARENA_CHUNK].first * ARENA_CHUNK;
}

extern bool arena_is_shared;  // pages were mapped over some of it that hold what they hold (exported.h)

// Sets bytes of slots to zero. Whole pages of large ranges go back to the system, so that they cost no memory.
void arena_clear(uint64_t address, uint64_t size_bytes);
