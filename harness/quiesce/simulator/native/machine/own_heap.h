// What the runtime itself takes of the C heap. A leak check reads that heap, and what its client leaks of events and
// streams must not look like a leak of native code.
#pragma once

#include <stdint.h>

// The chunks in use, as mallinfo2() counts them.
uint64_t own_heap_bytes(void);
