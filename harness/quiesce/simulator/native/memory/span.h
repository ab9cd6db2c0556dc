// What lies at an address: a stretch of memory of one kind.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"

struct span {
    enum thing thing;  // THING_NONE: pageable memory, of which nothing is known
    unsigned device;
    uint64_t start, size_bytes;
    unsigned flags;  // those that the memory was allocated or registered with
    bool dead;       // it was freed
};
