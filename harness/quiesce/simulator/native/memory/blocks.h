// Blocks: the addresses that are handed out, and what is kept of each block beside its entry in the ledger.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/arena.h"
#include "memory/base.h"
#include "memory/capacity.h"

// One TiB each for eight devices, managed, pinned and constant memory.
#define BLOCKS_BASE (memory_base + MEMORY_PAGE_BYTES)

struct pool;

#define MEMORY_ENDED (1u << 30)  // of the flags: imported, and its exporter has freed it

// What the ledger does not need to show of a block.
struct block {
    uint64_t size_bytes;  // rounded
    struct pool *pool;
    unsigned flags;
};

extern struct arena banks[BANKS];
extern struct block *blocks;  // by the index of its live entry

// The bank that an address belongs to, or NULL.
static inline struct arena *block_bank(uint64_t address) {
    uint64_t bank = (address - BLOCKS_BASE) / ARENA_BYTES;
    return address < BLOCKS_BASE || bank >= BANKS ? NULL : &banks[bank];
}

static inline struct arena_slot block_slot(uint64_t address) {
    const struct arena *bank = block_bank(address);
    return bank ? arena_find(bank, address) : (struct arena_slot){0};
}

// Whether an address is in constant memory, which the host alone writes (quiesce.simulator.kernels.translation.checks).
static inline bool is_constant(uint64_t address) { return block_bank(address) == &banks[BANK_CONSTANTS]; }

// Whether an address is in memory that kernels allocate with malloc (kernels/device_heap.h).
static inline bool block_is_of_heap(uint64_t address) {
    const struct arena *bank = block_bank(address);
    return bank && arena_is_apart(bank, address);
}

// The live entry of a slot's block; 0: there was never one, ARENA_DEAD: there was.
static inline uint32_t block_use(struct arena_slot slot) { return slot.use ? *slot.use : 0; }

bool blocks_make_room(uint32_t live);  // false: there is no memory for it

void blocks_tables(void (*add)(const void *start, size_t bytes));  // places where addresses are kept
bool blocks_open(void);
void blocks_close(void);
