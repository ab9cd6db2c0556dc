// CPython's own allocator of small objects (Objects/obmalloc.c): its pools as they lie in memory.
//
// A pool is 16 KiB (4 KiB before 3.10) of blocks of one size. Its header counts those that are in use, says how many
// were ever handed out, and begins the list of those that are free; the three agree in a pool and hardly anywhere else.
// What lies behind a free block's first word is what its last owner left there.
#pragma once

#include <stdint.h>

struct heap;

// Returns how large the pool is that begins at an address, or 0: there is none.
uint64_t heap_python_pool(uint64_t start, uint64_t end);

// Adds the blocks of a pool to the heap in which it lies.
void heap_python_enter(struct heap *heap, uint64_t start);
