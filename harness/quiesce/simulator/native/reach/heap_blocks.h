// The blocks of the heaps whose layout is known here: which of them are in use, and which were reached from elsewhere.
//
// A heap is one range of addresses, and blocks follow one another in it. Bitmaps with a bit for each 16 bytes say where
// one begins, and whether it is in use and was reached. They lie outside of every heap. Nothing here is ever freed: all
// of it ends with the process that searches (snapshot.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { BLOCK_ALIGNMENT = 16 };

struct heap;

struct block_range {
    uint64_t start, end;
};

// Heaps are added in the order of their addresses; returns NULL where there is no room.
struct heap *heap_add(uint64_t start, uint64_t end);
// Adds a block or a gap, behind those that were added; `start` is a multiple of BLOCK_ALIGNMENT.
void heap_block(struct heap *heap, uint64_t start, uint64_t end, bool in_use);
// A heap that is one block in use, such as a mapping of malloc's own for a large request; these come after the others.
bool heap_add_block(uint64_t start, uint64_t end);

// Reaches the block in use that an address lies in. Returns false where there is none, or it was reached before.
bool block_reach(uint64_t address, struct block_range *block);
bool block_was_reached(uint64_t address);
bool block_lies_at(uint64_t address);  // whether it lies in a known heap
uint64_t blocks_in_use(void);  // how many there are

// Calls `see` for each block in use that was not reached.
void blocks_unreached(void (*see)(uint64_t start, uint64_t end));
