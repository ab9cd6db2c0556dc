// Bytes that the threads of a block use one after another in one instruction, noted as a whole while a launch runs:
// who used each word is spelled out (memory_words.h) only where another use of the same bytes is looked at.
//
// Memory has chunks. A chunk is in rows as a whole, or its words have uses of their own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHUNK_BYTES = 128, NO_ROW = 0 };

struct row_use {
    uint64_t address, bytes;  // of all threads
    uint32_t each;            // bytes of a thread
    uint32_t thread;          // the first one, of the whole grid
    uint32_t site, moment, released;  // see block_order.h
    bool writes;
};

// The last rows that wrote and read it, the latter of two blocks.
struct chunk {
    uint64_t number;  // of bytes of memory: it is no address
    uint32_t begun;   // the launch that uses it
    uint32_t write, read, read_too;
    bool has_words;
};

// A launch begins, named by a number that no other one has. False: there is no memory for it.
bool memory_rows_begin(uint32_t launch);

struct chunk *memory_chunk(uint64_t address);  // NULL: there is no room for more

uint32_t memory_row_add(const struct row_use *row);  // NO_ROW: there is no room for more
const struct row_use *memory_row(uint32_t number);

void memory_rows_close(void);
void memory_rows_range(void (*add)(const void *start, size_t bytes));  // where they lie
