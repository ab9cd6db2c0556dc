#include "memory/capacity.h"

#include <string.h>

static uint64_t used_bytes[BANKS];  // owned or cached, rounded to the granularity

static uint64_t *used_of(unsigned bank) { return &used_bytes[bank == BANK_MANAGED ? 0 : bank]; }

uint64_t memory_capacity(unsigned bank) {
    return bank == BANK_PINNED ? settings.pinned_capacity_bytes : settings.capacity_bytes;
}

uint64_t memory_used(enum thing thing, unsigned device) { return *used_of(bank_of(thing, device)); }

bool memory_reserve(unsigned bank, uint64_t size_bytes) {
    uint64_t *used = used_of(bank);
    if (size_bytes > memory_capacity(bank) - *used) return false;
    *used += size_bytes;
    return true;
}

void memory_unreserve(unsigned bank, uint64_t size_bytes) { *used_of(bank) -= size_bytes; }

void memory_info(unsigned device, uint64_t *free_bytes, uint64_t *total_bytes) {
    *total_bytes = settings.capacity_bytes;
    *free_bytes = settings.capacity_bytes - *used_of(device);
}

void capacity_close(void) { memset(used_bytes, 0, sizeof used_bytes); }
