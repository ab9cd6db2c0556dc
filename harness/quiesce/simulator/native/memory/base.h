// Where memory lies that is given out here: one range of addresses, which is the same in most processes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Addresses that ASLR and AddressSanitizer's allocator (0x60…) leave alone on x86-64, so that runs are reproducible:
// below where programs lie (0x55…). After a page that is nobody's come the arenas of blocks.h, and then the addresses
// that clients reserve (address_space.h). ThreadSanitizer lets programs use the top of the address space only, and
// there is less room there. The lower digits are those of no small number, beside which bytecode and tables of an
// interpreter would look like addresses (reach.h).
#define MEMORY_PAGE_BYTES 4096
#if defined(__SANITIZE_THREAD__)
#define MEMORY_BASE_USUAL (0x7e9000000000ull - MEMORY_PAGE_BYTES)
#define SPACE_OFFSET (0x5800000000ull + MEMORY_PAGE_BYTES)
#define SPACE_BYTES (64ull << 30)
#else
#define MEMORY_BASE_USUAL (0x305ac6e00000ull - MEMORY_PAGE_BYTES)
#define SPACE_OFFSET (0xb41ad400000ull + MEMORY_PAGE_BYTES)
#define SPACE_BYTES (3ull << 40)
#endif
#define MEMORY_BYTES (SPACE_OFFSET + SPACE_BYTES)

// Other places are so far apart. There are few, so that kernels are seldom compiled for a new one.
#define MEMORY_BASE_STEP (1ull << 40)

extern uint64_t memory_base;

// Reserves the range where nothing lies. A program may have something in the usual one: V8, the engine of Node.js and
// of Chromium, puts its heaps at random addresses below 0x400000000000. Returns false where none is to be had.
bool base_reserve(void);
void base_give_up(void);
