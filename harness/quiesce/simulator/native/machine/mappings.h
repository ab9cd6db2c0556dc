// The mappings of this process, and which of their pages are there: as the kernel tells of them, without the C heap.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGE_BYTES = 4096 };

enum mapping_kind {
    MAPPING_OTHER,      // code, and what else can't be read as variables
    MAPPING_SHARED,     // writable, and another process may have it too
    MAPPING_READ_ONLY,  // private: a program may have written it before
    MAPPING_GUARD,      // can't be touched at all
    MAPPING_FILE,       // private and writable, of a file: variables of a program or library
    MAPPING_HEAP,       // "[heap]": what brk() gave
    MAPPING_STACK,      // "[stack]", the first thread's
    MAPPING_ANONYMOUS,  // private and writable
};

struct mapping {
    uint64_t start, end;
    enum mapping_kind kind;
};

// Calls `see` for each line of /proc/self/maps, which it may change.
void mappings_lines(void (*see)(char *line));

// Reads what there is now, in the order of addresses, into a table that stays in its place until it is forgotten.
// Returns how many there are, or 0 where they can't be read.
unsigned mappings_read(void);
const struct mapping *mapping_at_index(unsigned index);
void mappings_table(void (*add)(const void *start, size_t bytes));
void mappings_forget(void);

bool mappings_cover(uint64_t address);
// Whether all private memory that was read about is still there, also in a copy of the process: madvise(2) lets clients
// leave some out (MADV_DONTFORK).
bool mappings_are_there(void);

// Calls `see` for each run of touched pages in a range; for the whole range where the kernel doesn't tell.
void mappings_touched(uint64_t start, uint64_t end, void (*see)(uint64_t start, uint64_t end));
// The same without pages that are as their file has them.
void mappings_written(uint64_t start, uint64_t end, void (*see)(uint64_t start, uint64_t end));
// The same for shared memory.
void mappings_resident(uint64_t start, uint64_t end, void (*see)(uint64_t start, uint64_t end));
