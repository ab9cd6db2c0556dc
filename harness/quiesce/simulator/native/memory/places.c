#include "memory/places.h"

#include <string.h>

#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "memory/address_space.h"
#include "memory/blocks.h"
#include "memory/imported.h"
#include "memory/registered.h"
#include "memory/virtual.h"

struct span memory_find(uint64_t address) {
    struct arena *bank = block_bank(address);
    if (!bank && space_covers(address)) return virtual_find(address);
    if (!bank) return registered_find(address);
    struct arena_slot slot = arena_find(bank, address);
    uint32_t use = block_use(slot);
    unsigned number = (unsigned)(bank - banks);
    enum thing thing = number == BANK_PINNED ? THING_PINNED : number == BANK_MANAGED ? THING_MANAGED : THING_DEVICE;
    if (!use || use == ARENA_DEAD)
        return (struct span){thing, number < DEVICES_MAX ? number : 0, imported_start(slot.start), 0, 0, true};
    const struct live *live = ledger_live(use);
    bool dead = blocks[use].flags & MEMORY_ENDED;
    return (struct span){thing, live->device, live->address, dead ? 0 : live->size_bytes, blocks[use].flags, dead};
}

enum status memory_check(uint64_t address, uint64_t size_bytes) {
    if (!size_bytes) return OK;
    if (!address) return INVALID_VALUE;
    struct span span = memory_find(address);
    if (span.thing == THING_NONE || span.thing == THING_REGISTERED) return OK;  // the host's own
    // "Memory allocated via malloc() … cannot be used in any runtime or driver API calls" (Programming Guide)
    if (block_is_of_heap(address)) return INVALID_VALUE;
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
    if (block_bank(address))
        arena_clear(address, size_bytes);
    else
        memset((void *)address, 0, size_bytes);
}

uint32_t memory_live_at(uint64_t address) {
    if (space_covers(address)) return virtual_live_at(address);
    uint32_t use = block_use(block_slot(address));
    return use == ARENA_DEAD ? 0 : use;
}

bool memory_is_of_host(uint64_t address) {
    const struct arena *bank = block_bank(address);
    if (bank) return bank == &banks[BANK_PINNED] || bank == &banks[BANK_MANAGED];
    return !space_covers(address) && registered_find(address).thing != THING_NONE;
}

bool memory_is_of_heap(uint64_t address) { return block_is_of_heap(address); }

bool memory_is_shared(uint64_t address) {
    const struct live *entry = shared_any && block_bank(address) ? ledger_live(memory_live_at(address)) : NULL;
    return entry && (entry->thing == THING_IMPORTED || shared_exported(THING_DEVICE, entry->serial));
}

bool memory_covers(uint64_t address) { return block_bank(address) != NULL || space_covers(address); }

void memory_tables(void (*add)(const void *start, size_t bytes)) {
    blocks_tables(add);
    registered_table(add);
}
