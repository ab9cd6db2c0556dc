// Where a search for what is still held begins: the writable memory of the process that is no block of a known heap.
#pragma once

#include <stdint.h>

enum root {
    ROOT_HELD,     // variables, stacks, thread-local memory
    ROOT_UNKNOWN,  // memory of an allocator that is not known here: it may be in use, or not
    ROOT_MAPPED,   // the same, if its region was reached (regions.h)
    ROOT_SHARED,   // the same, that other processes may have too
};

// In the process that is looked at, before the search and after it.
void roots_prepare(void);
void roots_forget(void);

// In the process that searches: tells heaps, stacks and the rest apart.
void roots_find(void);
void roots_each(enum root root, void (*see)(uint64_t start, uint64_t end));
