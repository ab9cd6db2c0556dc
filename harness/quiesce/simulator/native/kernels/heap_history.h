// Who allocated each block of a device's heap, and who freed it. It is known until the memory is allocated again.
#pragma once

#include <stdint.h>

#include "kernels/wrong_access.h"

struct heap_block {
    uint64_t offset;  // of its address, see heap_history.c
    uint64_t bytes;
    struct heap_use made, freed;
};

// What is known of the block that begins at an address: NULL, nothing. The next call of the second one ends what is
// returned; it returns NULL where no memory is left.
const struct heap_block *heap_history_find(uint64_t address);
struct heap_block *heap_history_make(uint64_t address);

// The block that an address in the memory of a heap lies in or next to. NULL: there is none.
const struct heap_block *heap_history_near(uint64_t address, uint64_t *start);

void heap_history_close(void);
