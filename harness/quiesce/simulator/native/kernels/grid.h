// Runs a kernel: its blocks one after another, in the order of their numbers, so that each run does the same.
#pragma once

#include "kernels/abi.h"
#include "kernels/object.h"

struct grid {
    const struct object *object;
    const char *name;
    uint32_t blocks[3], threads[3];
    uint32_t dynamic_shared_bytes;
    const unsigned char *hidden_parameters;  // see machine/hidden.h
};

struct grid_end {
    int how;            // 0, or an enum kernel_end
    uint32_t block[3];  // the one that ended it before its time
    bool no_memory;     // nothing ran
};

struct grid_end grid_run(const struct grid *grid);

void grids_close(void);
void grids_range(void (*add)(const void *start, size_t bytes));  // of threads and blocks: it keeps old content
