// The mappings of this process, and which of their pages are there: as the kernel tells of them, without the C heap.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PAGE_BYTES = 4096 };

enum mapping_kind {
    MAPPING_OTHER,      // can't be written, or is shared
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

// Calls `see` for each run of touched pages in a range; for the whole range where the kernel doesn't tell.
void mappings_touched(uint64_t start, uint64_t end, void (*see)(uint64_t start, uint64_t end));
