// What betrays a wrong use of memory: bytes behind each block that nobody may change, and a fill of what was freed.
#pragma once

#include <stdint.h>
#include <string.h>

#include "machine/settings.h"

enum { RED_ZONE_BYTE = 0xfd, FREED_BYTE = 0xdd };

static inline void make_red_zone(uint64_t end) {
    // Filling no bytes of a page that was never touched costs a microcode assist where memset masks its stores.
    if (settings.red_zone_bytes) memset((char *)end, RED_ZONE_BYTE, settings.red_zone_bytes);
}

// Observes that the zone behind a block changed.
void verify_red_zone(uint64_t end, uint64_t address);

void poison(uint64_t address, uint64_t size_bytes);
