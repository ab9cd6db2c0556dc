// What the runtime itself takes of the C heap. A leak check reads that heap, and what its client leaks of events and
// streams must not look like a leak of native code. Each of its blocks ends with a mark: the search for what a client
// can still give back does not look into them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// The chunks in use, as mallinfo2() counts them.
uint64_t own_heap_bytes(void);

// Whether a block of the C heap, of which so many bytes can be used, is the runtime's own.
bool own_heap_has(uint64_t block, uint64_t usable_bytes);
