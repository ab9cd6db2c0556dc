// What a thread keeps to itself that runs blocks of a kernel beside other threads (workers.h): what was found, and the
// first touches of memory. When all are at their end, it is told in the order of the blocks, as one thread would have.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/list.h"
#include "kernels/touch.h"
#include "kernels/wrong_access.h"

enum { BESIDE_MAX = 8 };  // threads: each has a map of all memory

enum touch_what { NOTE, USE, ROWS };

// Offsets from SHADOW_BASE, for addresses would be signs that a client still knows a block.
struct touched_here {
    uint64_t block, offset, bytes;
    uint32_t site, touch;  // touch: kinds of a note
    enum touch_what what;
    struct touched_rows rows;
};

struct mistake_here {
    uint64_t block, count;
    struct wrong_access wrong;
};

struct beside {
    uint64_t block;          // that runs, by its place in the order of all
    unsigned char *touched;  // its map (touched.h)
    struct list touches, mistakes;  // struct touched_here, struct mistake_here
    uint64_t cleared;        // cells of the map
    bool is_incomplete;      // no memory was left for something
};

extern _Thread_local struct beside *beside;  // NULL: this thread runs all blocks by itself

struct beside *beside_of(unsigned number);  // of a thread, from 0 on
unsigned beside_number(void);               // of this one

// The kinds of use that are known of a cell.
unsigned char *beside_kinds(const struct beside *of, uint64_t cell);

// What a kernel does there, see touched.h and checks.h.
void beside_note(uint64_t address, uint32_t kinds, uint32_t site);
void beside_use(uint64_t address, uint64_t bytes, enum touch touch, uint32_t site);
void beside_rows(uint64_t address, uint64_t bytes, struct touched_rows rows, enum touch touch, uint32_t site);
void beside_see(const struct wrong_access *wrong);

// Only one thread is in what lies between these two.
void beside_lock(void);
void beside_unlock(void);

void beside_close(void);
