// Runs the threads of one block whose threads wait for each other: warp by warp, each thread until it waits.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernels/abi.h"
#include "kernels/barrier.h"
#include "kernels/object.h"
#include "kernels/order.h"

struct block {
    struct kernel_context context;
    const struct object *object;
    const struct order *order;
    struct kernel_thread *threads[BLOCK_THREADS_MAX];
    const struct kernel_thread *current;  // that runs, or did last; NULL: none did by itself
    char *memory;
    bool has_threads;  // else it has not begun, or all of its threads ran together
    bool is_together;  // its threads run together where they can
    bool is_stepping;  // its kernel takes the threads of a warp to be in step
    unsigned count, left;
    struct barriers barriers;
};

// What came of a block when it was let run.
enum block_turn {
    BLOCK_ENDED,
    BLOCK_SPINS,        // its threads look at memory again and again, and waited for nothing else
    BLOCK_CAME_TO_SPIN  // the same, after they did something
};

// How much memory the threads of a block need.
size_t block_bytes(const struct object *object, const uint32_t block[3]);

// Begins a block with the context that it has. `memory` is aligned to 64 bytes.
void block_open(struct block *block, const struct object *object, const struct order *order, char *memory);

// Lets it run until it ends, or until only another block can change what its threads look at: an enum block_turn; or
// how it ended before its time, an enum kernel_end.
int block_run(struct block *block);

// How often threads went on after a barrier of their block, on this thread of the processor since the last call.
uint64_t block_turns_take(void);
