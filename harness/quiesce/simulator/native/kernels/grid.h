// Runs a kernel: its blocks one after another, in an order that is the same in each run. A block whose threads wait for
// another block is set aside meanwhile.
#pragma once

#include "kernels/abi.h"
#include "kernels/object.h"
#include "kernels/order.h"
#include "kernels/wrong_access.h"

struct grid {
    const struct object *object;
    const char *name;
    uint32_t blocks[3], threads[3];
    uint32_t dynamic_shared_bytes;
    struct order order;
    unsigned threads_at_once;  // of the processor, that run blocks (footprints.h); 0 or 1: this one alone
    bool was_long;  // the last launch of the kernel: several threads begin at once
    bool is_cooperative;                     // all its blocks may wait for each other
    void *touched;  // see touched.h
    const uint32_t *only;  // block of all of them that runs; NULL: all do
    const unsigned char *hidden_parameters;  // see machine/hidden.h
};

struct grid_end {
    int how;            // 0, or an enum kernel_end
    uint32_t block[3];  // the one that ended it before its time
    uint64_t address;   // that it had no memory at: ENDED_BY_ADDRESS
    struct waiting waiting;  // ENDED_WAITING
    bool no_memory;     // nothing ran
    bool was_long;      // several threads were worth it
    uint64_t turns;     // how often threads went on after a barrier
};

struct grid_end grid_run(const struct grid *grid);

void grids_close(void);
