#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/failure.h"
#include "ledger/handle.h"
#include "ledger/stacks.h"
#include "machine/lock.h"
#include "machine/settings.h"
#include "memory/arena.h"
#include "memory/poison.h"
#include "memory/pool.h"
#include "memory/refusal.h"
#include "memory/registered.h"
#include "memory/symbol.h"
#include "memory/virtual.h"
#include "order/capture.h"
#include "order/graph_memory.h"
#include "order/stream.h"

// Addresses that ASLR and AddressSanitizer's allocator (0x60…) leave alone on x86-64, so that runs are reproducible:
// below where programs lie (0x55…). One TiB each for eight devices, managed and pinned memory. ThreadSanitizer lets
// programs use the top of the address space only, and there is less room there. The lower digits are those of no small
// number, beside which bytecode and tables of an interpreter would look like addresses (reach.h).
#if defined(__SANITIZE_THREAD__)
#define BASE 0x7e9000000000ull
#else
#define BASE 0x305ac6e00000ull
#endif

enum { BANK_MANAGED = DEVICES_MAX, BANK_PINNED = MEMORY_OF_HOST, BANKS };

static struct arena arenas[BANKS];
static uint64_t used_bytes[BANKS];  // owned or cached, rounded to the granularity; managed memory counts as device 0's

// What the ledger does not need to show of a block, by the index of its live entry.
static struct block {
    uint64_t size_bytes;  // rounded
    struct pool *pool;
    unsigned flags;
} *blocks;
static uint32_t blocks_capacity;

static unsigned bank_of(enum thing thing, unsigned device) {
    return thing == THING_PINNED ? BANK_PINNED : thing == THING_MANAGED ? BANK_MANAGED : device;
}

static uint64_t rounded(uint64_t size_bytes) {
    uint64_t granularity = settings.granularity_bytes;
    return (size_bytes + granularity - 1) / granularity * granularity;
}

// -- capacity --------------------------------------------------------------------------------------------------------

static uint64_t *used_of(unsigned bank) { return &used_bytes[bank == BANK_MANAGED ? 0 : bank]; }

static uint64_t capacity_of(unsigned bank) {
    return bank == BANK_PINNED ? settings.pinned_capacity_bytes : settings.capacity_bytes;
}

uint64_t memory_used(enum thing thing, unsigned device) { return *used_of(bank_of(thing, device)); }

bool memory_reserve(unsigned device, uint64_t size_bytes) {
    uint64_t *used = used_of(device);
    if (size_bytes > capacity_of(device) - *used) return false;
    *used += size_bytes;
    return true;
}

void memory_unreserve(unsigned device, uint64_t size_bytes) { *used_of(device) -= size_bytes; }

// -- blocks ----------------------------------------------------------------------------------------------------------

static bool make_room(uint32_t live) {
    if (live < blocks_capacity) return true;
    uint32_t capacity = blocks_capacity ? 2 * blocks_capacity : 4096;
    while (capacity <= live) capacity *= 2;
    struct block *grown = realloc(blocks, capacity * sizeof *grown);
    if (!grown) return false;
    blocks = grown;
    blocks_capacity = capacity;
    return true;
}

static void see(enum seen seen, enum thing thing, unsigned device, uint64_t address, uint64_t size_bytes,
                const struct stream *stream) {
    uint32_t stack = stack_of_call();  // before: a call in its midst would have the observation built in memory
    ledger_see((struct observation){.seen = (uint8_t)seen,
                                    .thing = (uint8_t)thing,
                                    .device = (uint16_t)device,
                                    .address = address,
                                    .size_bytes = size_bytes,
                                    .stack = stack,
                                    .stream = stream ? stream->serial : 0,
                                    .flags = stream ? FLAG_ORDERED : 0});
}

// Inline for the reason that ledger.h gives, like make().
static inline __attribute__((always_inline)) void hand_out(uint32_t live, enum thing thing, unsigned device,
                                                           uint64_t size_bytes, struct block block,
                                                           const struct stream *stream, uint64_t address) {
    ledger_live(live)->address = address;
    ledger_live(live)->stack = stack_of_call();
    blocks[live] = block;
    make_red_zone(address + size_bytes);
    see(SEEN_ALLOCATED, thing, device, address, size_bytes, stream);
}

// Makes a block of memory whose capacity is reserved.
static inline __attribute__((always_inline)) enum status make(enum thing thing, unsigned device, uint64_t size_bytes,
                                                              struct block block, const struct stream *stream,
                                                              uint64_t *address) {
    struct arena *arena = &arenas[bank_of(thing, device)];
    struct live entry = {.size_bytes = size_bytes, .device = (uint16_t)device, .thing = (uint8_t)thing};
    uint32_t live = ledger_add(entry);
    if (!live) return OUT_OF_MEMORY;
    *address = make_room(live) ? arena_take(arena, size_bytes + settings.red_zone_bytes, live) : 0;
    if (!*address) {
        ledger_remove(live);
        return OUT_OF_MEMORY;
    }
    hand_out(live, thing, device, size_bytes, block, stream, *address);
    return OK;
}

// Ends a client's ownership; the address stays taken.
static void disown(uint32_t live, const struct stream *stream) {
    const struct live *entry = ledger_live(live);
    verify_red_zone(entry->address + entry->size_bytes, entry->address);
    see(SEEN_FREED, (enum thing)entry->thing, entry->device, entry->address, entry->size_bytes, stream);
    ledger_remove(live);
}

static struct arena *arena_at(uint64_t address) {
    uint64_t bank = (address - BASE) / ARENA_BYTES;
    return address < BASE || bank >= BANKS ? NULL : &arenas[bank];
}

static bool is_of_graphs(const struct pool *pool) { return pool && pool->of_graphs; }

static void give(uint64_t address, struct arena_slot slot, const struct pool *pool) {
    arena_give(arena_at(address), slot, settings.recycle != RECYCLE_NEVER && !is_of_graphs(pool));
}

static void refuse(enum seen seen, enum thing thing, uint64_t address) {
    ledger_see_wrong((struct observation){
        .seen = (uint8_t)seen, .thing = (uint8_t)thing, .stack = stack_of_call(), .address = address});
}

void memory_refuse(uint64_t address) { refuse(SEEN_FREED_FOREIGN, THING_DEVICE, address); }
void memory_refuse_twice(uint64_t address) { refuse(SEEN_FREED_TWICE, THING_DEVICE, address); }

static struct arena_slot slot_at(uint64_t address) {
    const struct arena *arena = arena_at(address);
    return arena ? arena_find(arena, address) : (struct arena_slot){0};
}

static uint32_t use_of(struct arena_slot slot) { return slot.use ? *slot.use : 0; }

// Whether a block goes back to a function that frees one of two kinds. Memory of a pool does so as device memory: only
// cudaFree says that it takes what cudaMallocFromPoolAsync returned.
static bool is_freed_as(uint32_t live, enum thing thing, enum thing other) {
    if (blocks[live].pool) return thing == THING_DEVICE;
    return ledger_live(live)->thing == thing || ledger_live(live)->thing == other;
}

// Returns a client's live block that begins at an address, of one of two kinds, given its slot. What is wrong is seen.
static uint32_t owned(uint64_t address, struct arena_slot slot, enum thing thing, enum thing other) {
    uint32_t use = use_of(slot);
    bool fits = use && use != ARENA_DEAD && slot.start == address && !ledger_live(use)->part &&
                is_freed_as(use, thing, other);
    if (fits) return use;
    bool twice = use == ARENA_DEAD && slot.start == address;
    refuse(twice ? SEEN_FREED_TWICE : SEEN_FREED_FOREIGN, thing, address);
    return 0;
}

// -- allocation and free ---------------------------------------------------------------------------------------------

static enum call_kind kind_of(enum thing thing) {
    return thing == THING_PINNED ? CALL_PINNED : thing == THING_MANAGED ? CALL_MANAGED : CALL_DEVICE;
}

enum status memory_allocate(enum thing thing, unsigned device, uint64_t size_bytes, unsigned flags, uint64_t *address) {
    *address = 0;
    enum status status = capture_forbid_unsafe();
    if (status || !size_bytes) return status;
    unsigned bank = bank_of(thing, device);
    uint64_t footprint = rounded(size_bytes);
    status = failure_meet(kind_of(thing));
    bool injected = status;
    if (!status && size_bytes > capacity_of(bank)) status = OUT_OF_MEMORY;
    if (!status && !memory_reserve(bank, footprint)) status = OUT_OF_MEMORY;
    if (!status) {
        status = make(thing, device, size_bytes, (struct block){footprint, NULL, flags}, NULL, address);
        if (status) memory_unreserve(bank, footprint);
    }
    if (status) refusal_see(thing, device, size_bytes, status, injected);
    return status;
}

enum status memory_free(enum thing thing, enum thing other, uint64_t address) {
    enum status status = capture_forbid_unsafe();
    if (status || !address) return status;
    struct arena_slot slot = slot_at(address);
    uint32_t live = owned(address, slot, thing, other);
    if (!live) return INVALID_VALUE;
    struct block block = blocks[live];
    enum thing freed = (enum thing)ledger_live(live)->thing;
    unsigned device = ledger_live(live)->device;
    uint64_t unlocked = lock_suspensions(), serial = ledger_live(live)->serial;
    // Memory of a pool that is freed this way is not waited for: cudaFree "will not perform any implicit
    // synchronization when the pointer was allocated with cudaMallocAsync".
    if (!block.pool) {
        for (unsigned i = 0; i < settings.devices && !status; i++)
            if (freed != THING_DEVICE || i == device) status = stream_finish_device(i);
        if (status) return status;
        // Somebody else may have freed it, and another block may lie there.
        if (lock_suspensions() != unlocked && (use_of(slot) != live || ledger_live(live)->serial != serial)) {
            refuse(SEEN_FREED_TWICE, thing, address);
            return INVALID_VALUE;
        }
        block = blocks[live];
    }
    uint64_t size_bytes = ledger_live(live)->size_bytes;
    disown(live, NULL);
    poison(address, size_bytes);
    give(address, slot, block.pool);
    if (block.pool) {
        pool_free(block.pool, block.size_bytes);
        pool_reuse(block.pool, block.size_bytes);
    } else {
        memory_unreserve(bank_of(freed, device), block.size_bytes);
    }
    return OK;
}

static enum status allocate_from(struct pool *pool, uint64_t size_bytes, struct stream *stream, uint64_t *address) {
    uint64_t footprint = rounded(size_bytes);
    enum status status = failure_meet(kind_of(pool->thing));
    bool injected = status;
    bool fits = size_bytes <= capacity_of(pool->place);
    if (!status && !(fits && pool_take(pool, footprint))) {
        // Frees that streams have not come to yet may be waited for (cudaMemPoolReuseAllowInternalDependencies).
        if (fits && stream) status = pool_wait(pool);
        if (!status && !(fits && pool_take(pool, footprint))) status = OUT_OF_MEMORY;
    }
    if (!status) {
        status = make(pool->thing, pool->device, size_bytes, (struct block){footprint, pool, 0}, stream, address);
        if (status) pool_free(pool, footprint), pool_reuse(pool, footprint);
    }
    if (status) refusal_see(pool->thing, pool->device, size_bytes, status, injected);
    return status;
}

enum status memory_allocate_ordered(struct pool *pool, uint64_t size_bytes, struct stream *stream, uint64_t *address) {
    *address = 0;
    if (!size_bytes) return OK;
    if (stream->capture) return graph_memory_allocate(size_bytes, stream, address);
    stream_keep(stream);  // host functions may run without the lock: another thread may destroy it
    enum status status = allocate_from(pool, size_bytes, stream, address);
    stream_drop(stream);
    return status;
}

enum status memory_allocate_from(struct pool *pool, uint64_t size_bytes, uint64_t *address) {
    *address = 0;
    return size_bytes ? allocate_from(pool, size_bytes, NULL, address) : OK;
}

enum status memory_allocate_again(struct pool *pool, uint64_t address, uint64_t size_bytes,
                                  const struct stream *stream) {
    uint64_t footprint = rounded(size_bytes);
    bool fits = pool_take(pool, footprint);
    struct live entry = {.size_bytes = size_bytes, .device = (uint16_t)pool->device, .thing = THING_DEVICE};
    uint32_t live = fits ? ledger_add(entry) : 0;
    if (live && make_room(live)) {
        *slot_at(address).use = live;
        hand_out(live, THING_DEVICE, pool->device, size_bytes, (struct block){footprint, pool, 0}, stream, address);
        return OK;
    }
    if (live) ledger_remove(live);
    if (fits) pool_free(pool, footprint), pool_reuse(pool, footprint);
    refusal_see(pool->thing, pool->device, size_bytes, OUT_OF_MEMORY, false);
    return OUT_OF_MEMORY;
}

enum status memory_end(uint64_t address) {
    struct arena_slot slot = slot_at(address);
    uint32_t live = owned(address, slot, THING_DEVICE, THING_DEVICE);
    if (!live) return INVALID_VALUE;
    struct block block = blocks[live];
    disown(live, NULL);
    pool_free(block.pool, block.size_bytes);
    pool_reuse(block.pool, block.size_bytes);
    arena_end(slot);
    return OK;
}

enum status memory_free_ordered(uint64_t address, struct stream *stream) {
    if (!address) return OK;
    if (stream->capture) return graph_memory_free(address, stream);
    struct arena_slot slot = slot_at(address);
    uint32_t live = owned(address, slot, THING_DEVICE, THING_DEVICE);
    if (!live) return INVALID_VALUE;
    struct freed freed = {address, ledger_live(live)->size_bytes, blocks[live].size_bytes, ledger_live(live)->device,
                          blocks[live].pool};
    disown(live, stream);
    if (freed.pool) pool_free(freed.pool, freed.footprint_bytes);
    arena_end(slot);
    return stream_enqueue(stream, &(struct work){.kind = WORK_FREE, .freed = freed});
}

void memory_finish_free(const struct freed *freed) {
    poison(freed->address, freed->size_bytes);
    // A graph may have it again already: in the stream's order that is later.
    if (!is_of_graphs(freed->pool)) give(freed->address, slot_at(freed->address), freed->pool);
    if (freed->pool)
        pool_reuse(freed->pool, freed->footprint_bytes);
    else
        memory_unreserve(freed->device, freed->footprint_bytes);
}

// -- what lies where -------------------------------------------------------------------------------------------------

struct span memory_find(uint64_t address) {
    struct arena *arena = arena_at(address);
    if (!arena && space_covers(address)) return virtual_find(address);
    if (!arena) return symbol_find(address).start ? symbol_find(address) : registered_find(address);
    struct arena_slot slot = arena_find(arena, address);
    uint32_t use = use_of(slot);
    unsigned bank = (unsigned)(arena - arenas);
    enum thing thing = bank == BANK_PINNED ? THING_PINNED : bank == BANK_MANAGED ? THING_MANAGED : THING_DEVICE;
    if (!use || use == ARENA_DEAD) return (struct span){thing, bank < DEVICES_MAX ? bank : 0, slot.start, 0, 0, true};
    const struct live *live = ledger_live(use);
    return (struct span){thing, live->device, slot.start, live->size_bytes, blocks[use].flags, false};
}

enum status memory_check(uint64_t address, uint64_t size_bytes) {
    if (!size_bytes) return OK;
    if (!address) return INVALID_VALUE;
    struct span span = memory_find(address);
    if (span.thing == THING_NONE || span.thing == THING_REGISTERED) return OK;  // the host's own
    uint64_t before = address - span.start;  // a sum of address and size may wrap around
    if (!span.dead && before <= span.size_bytes && size_bytes <= span.size_bytes - before) return OK;
    ledger_see_wrong((struct observation){.seen = span.dead ? SEEN_USED_AFTER_FREE : SEEN_OUT_OF_BOUNDS,
                                    .thing = (uint8_t)span.thing,
                                    .stack = stack_of_call(),
                                    .device = (uint16_t)span.device,
                                    .address = address,
                                    .size_bytes = size_bytes,
                                    .other = span.start + span.size_bytes});
    return INVALID_VALUE;
}

void memory_clear(uint64_t address, uint64_t size_bytes) {
    if (arena_at(address))
        arena_clear(address, size_bytes);
    else
        memset((void *)address, 0, size_bytes);
}

uint32_t memory_live_at(uint64_t address) {
    if (space_covers(address)) return virtual_live_at(address);
    uint32_t use = use_of(slot_at(address));
    return use == ARENA_DEAD ? 0 : use;
}

bool memory_covers(uint64_t address) { return arena_at(address) != NULL || space_covers(address); }

void memory_tables(void (*add)(const void *start, size_t bytes)) {
    add(arenas, sizeof arenas);
    for (unsigned bank = 0; bank < BANKS; bank++)
        for (unsigned i = 0; i < ARENA_CLASSES; i++)
            add(arenas[bank].classes[i].free, arenas[bank].classes[i].free_capacity * sizeof(struct arena_slot));
    registered_table(add);
}

void memory_info(unsigned device, uint64_t *free_bytes, uint64_t *total_bytes) {
    *total_bytes = settings.capacity_bytes;
    *free_bytes = settings.capacity_bytes - *used_of(device);
}

// -- beginning and end -----------------------------------------------------------------------------------------------

bool memory_open(void) {
    for (unsigned bank = 0; bank < BANKS; bank++) {
        if (bank >= settings.devices && bank < DEVICES_MAX) continue;
        if (!arena_open(&arenas[bank], BASE + bank * ARENA_BYTES, settings.recycle == RECYCLE_LATE)) return false;
    }
    return true;
}

void memory_close(void) {
    for (unsigned bank = 0; bank < BANKS; bank++) {
        arena_close(&arenas[bank]);
        used_bytes[bank] = 0;
    }
    free(blocks);
    registered_close();
    blocks = NULL;
    blocks_capacity = 0;
}
