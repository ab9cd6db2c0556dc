// Capacity: how much of each device, and of what can be page-locked, is taken. Addresses are not its business.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/settings.h"

// Places whose capacity pools take: a device by its number, or memory of the host.
enum { MEMORY_OF_HOST = DEVICES_MAX + 1 };

// Banks, each with addresses of its own: one for each device, then these. Managed memory counts as device 0's, and
// constant memory as that of its device.
enum { BANK_MANAGED = DEVICES_MAX, BANK_PINNED = MEMORY_OF_HOST, BANK_CONSTANTS, BANKS };

static inline unsigned bank_of(enum thing thing, unsigned device) {
    return thing == THING_PINNED ? BANK_PINNED : thing == THING_MANAGED ? BANK_MANAGED : device;
}

uint64_t memory_capacity(unsigned bank);
bool memory_reserve(unsigned bank, uint64_t size_bytes);
void memory_unreserve(unsigned bank, uint64_t size_bytes);
uint64_t memory_used(enum thing thing, unsigned device);  // where that kind lies
void memory_info(unsigned device, uint64_t *free_bytes, uint64_t *total_bytes);

void capacity_close(void);
