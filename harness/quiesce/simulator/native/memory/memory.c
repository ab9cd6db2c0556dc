#include "memory/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "ledger/failure.h"
#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/lock.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "memory/blocks.h"
#include "memory/exported.h"
#include "memory/imported.h"
#include "memory/poison.h"
#include "memory/pool.h"
#include "memory/refusal.h"
#include "memory/registered.h"
#include "memory/shadow.h"

static uint64_t rounded(uint64_t size_bytes) {
    uint64_t granularity = settings.granularity_bytes;
    return (size_bytes + granularity - 1) / granularity * granularity;
}

// -- blocks ----------------------------------------------------------------------------------------------------------

static void see(enum seen seen, enum thing thing, unsigned device, uint64_t address, uint64_t size_bytes,
                const uint64_t *stream) {
    uint32_t stack = stack_of_call();  // before: a call in its midst would have the observation built in memory
    ledger_see((struct observation){.seen = (uint8_t)seen,
                                    .thing = (uint8_t)thing,
                                    .device = (uint16_t)device,
                                    .address = address,
                                    .size_bytes = size_bytes,
                                    .stack = stack,
                                    .stream = stream ? *stream : 0,
                                    .flags = stream ? FLAG_ORDERED : 0});
}

// Inline for the reason that ledger.h gives, like make().
static inline __attribute__((always_inline)) void hand_out(uint32_t live, enum thing thing, unsigned device,
                                                           uint64_t size_bytes, struct block block,
                                                           const uint64_t *stream, uint64_t address) {
    ledger_live(live)->address = address;
    ledger_live(live)->stack = stack_of_call();
    blocks[live] = block;
    make_red_zone(address + size_bytes);
    if (thing != THING_DEVICE) shadow_write(address, size_bytes);  // the host writes it unseen
    see(SEEN_ALLOCATED, thing, device, address, size_bytes, stream);
}

// Pinned and managed blocks have pages of their own, which can be protected (order/guard.h). From 16 KiB on every slot
// has.
static uint64_t in_pages(uint64_t size_bytes) {
    uint64_t slot_bytes = MEMORY_PAGE_BYTES;
    while (slot_bytes < size_bytes && slot_bytes < 4 * MEMORY_PAGE_BYTES) slot_bytes *= 2;
    return slot_bytes > size_bytes ? slot_bytes : size_bytes;
}

// Makes a block of memory whose capacity is reserved.
static inline __attribute__((always_inline)) enum status make(enum thing thing, unsigned device, uint64_t size_bytes,
                                                              struct block block, const uint64_t *stream,
                                                              uint64_t *address) {
    struct arena *bank = &banks[block.flags & MEMORY_CONSTANT ? BANK_CONSTANTS : bank_of(thing, device)];
    struct live entry = {.size_bytes = size_bytes,
                         .device = (uint16_t)device,
                         .thing = (uint8_t)thing,
                         .context = (uint8_t)device_context()};
    uint32_t live = ledger_add(entry);
    if (!live) return OUT_OF_MEMORY;
    uint64_t slot_bytes = size_bytes + settings.red_zone_bytes;
    if (thing == THING_PINNED || thing == THING_MANAGED) slot_bytes = in_pages(slot_bytes);
    *address = blocks_make_room(live) ? arena_take(bank, slot_bytes, live) : 0;
    if (!*address) {
        ledger_remove(live);
        return OUT_OF_MEMORY;
    }
    hand_out(live, thing, device, size_bytes, block, stream, *address);
    return OK;
}

// Ends a client's ownership; the address stays taken.
static void disown(uint32_t live, const uint64_t *stream) {
    const struct live *entry = ledger_live(live);
    verify_red_zone(entry->address + entry->size_bytes, entry->address);
    if (__builtin_expect(exported_any, false)) exported_end(live);
    see(SEEN_FREED, (enum thing)entry->thing, entry->device, entry->address, entry->size_bytes, stream);
    ledger_remove(live);
}

static bool is_of_graphs(const struct pool *pool) { return pool && pool->of_graphs; }

static void give(uint64_t address, struct arena_slot slot, const struct pool *pool) {
    arena_give(block_bank(address), slot, settings.recycle != RECYCLE_NEVER && !is_of_graphs(pool));
}

// Whether a block goes back to a function that frees one of two kinds. Memory of a pool does so as device memory: only
// cudaFree says that it takes what cudaMallocFromPoolAsync returned.
static bool is_freed_as(uint32_t live, enum thing thing, enum thing other) {
    if (blocks[live].pool) return thing == THING_DEVICE;
    return ledger_live(live)->thing == thing || ledger_live(live)->thing == other;
}

// Returns a client's live block that begins at an address, of one of two kinds, given its slot. What is wrong is seen.
static uint32_t owned(uint64_t address, struct arena_slot slot, enum thing thing, enum thing other) {
    uint32_t use = block_use(slot);
    bool fits = use && use != ARENA_DEAD && slot.start == address && !ledger_live(use)->part &&
                is_freed_as(use, thing, other);
    if (fits) return use;
    bool twice = use == ARENA_DEAD && slot.start == address;
    if (block_is_of_heap(address))
        refuse_free_of_heap(address, use && use != ARENA_DEAD ? ledger_live(use)->stream : UINT64_MAX);
    else
        refuse_free(twice ? SEEN_FREED_TWICE : SEEN_FREED_FOREIGN, thing, address);
    return 0;
}

// -- allocation and free ---------------------------------------------------------------------------------------------

static enum call_kind kind_of(enum thing thing) {
    return thing == THING_PINNED ? CALL_PINNED : thing == THING_MANAGED ? CALL_MANAGED : CALL_DEVICE;
}

enum status memory_allocate(enum thing thing, unsigned device, uint64_t size_bytes, unsigned flags, uint64_t *address) {
    *address = 0;
    enum status status = upcalls.order.forbid_unsafe();
    if (status || !size_bytes) return status;
    unsigned bank = bank_of(thing, device);
    uint64_t footprint = rounded(size_bytes);
    status = failure_meet(kind_of(thing));
    bool injected = status;
    if (!status && size_bytes > memory_capacity(bank)) status = OUT_OF_MEMORY;
    if (!status && !memory_reserve(bank, footprint)) status = OUT_OF_MEMORY;
    if (!status) {
        status = make(thing, device, size_bytes, (struct block){footprint, NULL, flags}, NULL, address);
        if (status) memory_unreserve(bank, footprint);
    }
    if (status) refusal_see(thing, device, size_bytes, status, injected);
    return status;
}

enum status memory_free(enum thing thing, enum thing other, uint64_t address) {
    enum status status = upcalls.order.forbid_unsafe();
    if (status || !address) return status;
    struct arena_slot slot = block_slot(address);
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
            if (freed != THING_DEVICE || i == device) status = upcalls.order.finish_device(i);
        if (status) return status;
        // Somebody else may have freed it, and another block may lie there.
        if (lock_suspensions() != unlocked && (block_use(slot) != live || ledger_live(live)->serial != serial)) {
            refuse_free(SEEN_FREED_TWICE, thing, address);
            return INVALID_VALUE;
        }
        block = blocks[live];
    }
    uint64_t size_bytes = ledger_live(live)->size_bytes;
    disown(live, NULL);
    poison(address, size_bytes);
    if (shadows_are_kept) shadow_forget(address, size_bytes);
    give(address, slot, block.pool);
    if (block.pool) {
        pool_free(block.pool, block.size_bytes);
        pool_reuse(block.pool, block.size_bytes);
    } else {
        memory_unreserve(bank_of(freed, device), block.size_bytes);
    }
    return OK;
}

static enum status allocate_from(struct pool *pool, uint64_t size_bytes, const uint64_t *stream, uint64_t *address) {
    uint64_t footprint = rounded(size_bytes);
    enum status status = failure_meet(kind_of(pool->thing));
    bool injected = status;
    bool fits = size_bytes <= memory_capacity(pool->place);
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

enum status memory_allocate_from(struct pool *pool, uint64_t size_bytes, const uint64_t *stream, uint64_t *address) {
    *address = 0;
    return size_bytes ? allocate_from(pool, size_bytes, stream, address) : OK;
}

enum status memory_allocate_again(struct pool *pool, uint64_t address, uint64_t size_bytes,
                                  const uint64_t *stream) {
    uint64_t footprint = rounded(size_bytes);
    bool fits = pool_take(pool, footprint);
    struct live entry = {.size_bytes = size_bytes,
                         .device = (uint16_t)pool->device,
                         .thing = THING_DEVICE,
                         .context = (uint8_t)device_context()};
    uint32_t live = fits ? ledger_add(entry) : 0;
    if (live && blocks_make_room(live)) {
        *block_slot(address).use = live;
        hand_out(live, THING_DEVICE, pool->device, size_bytes, (struct block){footprint, pool, 0}, stream, address);
        return OK;
    }
    if (live) ledger_remove(live);
    if (fits) pool_free(pool, footprint), pool_reuse(pool, footprint);
    refusal_see(pool->thing, pool->device, size_bytes, OUT_OF_MEMORY, false);
    return OUT_OF_MEMORY;
}

enum status memory_end(uint64_t address) {
    struct arena_slot slot = block_slot(address);
    uint32_t live = owned(address, slot, THING_DEVICE, THING_DEVICE);
    if (!live) return INVALID_VALUE;
    struct block block = blocks[live];
    disown(live, NULL);
    pool_free(block.pool, block.size_bytes);
    pool_reuse(block.pool, block.size_bytes);
    arena_end(slot);
    if (shadows_are_kept) shadow_forget(address, block.size_bytes);
    return OK;
}

enum status memory_begin_free(uint64_t address, uint64_t stream, struct freed *freed) {
    struct arena_slot slot = block_slot(address);
    uint32_t live = owned(address, slot, THING_DEVICE, THING_DEVICE);
    if (!live) return INVALID_VALUE;
    *freed = (struct freed){address, ledger_live(live)->size_bytes, blocks[live].size_bytes, ledger_live(live)->device,
                            blocks[live].pool};
    disown(live, &stream);
    if (freed->pool) pool_free(freed->pool, freed->footprint_bytes);
    arena_end(slot);
    shadow_leave(address, freed->size_bytes);
    return OK;
}

void memory_finish_free(const struct freed *freed) {
    poison(freed->address, freed->size_bytes);
    if (shadows_are_kept) shadow_forget(freed->address, freed->size_bytes);
    // A graph may have it again already: in the stream's order that is later.
    if (!is_of_graphs(freed->pool)) give(freed->address, block_slot(freed->address), freed->pool);
    if (freed->pool)
        pool_reuse(freed->pool, freed->footprint_bytes);
    else
        memory_unreserve(freed->device, freed->footprint_bytes);
}

// -- beginning and end -----------------------------------------------------------------------------------------------

bool memory_open(void) { return blocks_open() && shadows_open(); }

void __tsan_init(void) __attribute__((weak));

const char *memory_why_not(void) {
    if (__tsan_init)
        return "ThreadSanitizer leaves a program no addresses for simulated devices; build the program without "
               "-fsanitize=thread";
    static char why[256];
    struct rlimit limit;
    if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY) {
        snprintf(why, sizeof why,
                 "simulated devices need terabytes of addresses, which cost no memory, and this process is limited to "
                 "%" PRIu64 " MiB of them (RLIMIT_AS); run \"ulimit -v unlimited\" before, or leave out the limit that "
                 "the program sets",
                 (uint64_t)limit.rlim_cur >> 20);
        return why;
    }
    return "simulated devices need terabytes of addresses, which cost no memory, and the system did not reserve them; "
           "if /proc/sys/vm/overcommit_memory is 2, set it to 0 or 1";
}

void memory_close(void) {
    imported_close();
    shared_tables_close();
    exported_any = arena_is_shared = false;
    shadows_close();
    blocks_close();
    capacity_close();
    registered_close();
}

bool memory_is_open_to(unsigned device, uint64_t address, unsigned owner) {
    if (device_may_use(device, owner)) return true;
    uint32_t use = block_use(block_slot(address));
    if (use == ARENA_DEAD) return pools_let(owner, device);
    const struct pool *pool = use ? blocks[use].pool : NULL;
    return pool && pool_access(pool, device);
}
