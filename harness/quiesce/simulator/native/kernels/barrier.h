// The sixteen barriers of a block (PTX ISA, "bar.sync, bar.red, bar.arrive").
//
// A barrier instruction that is `.aligned`, as __syncthreads() is, has to be the same one for all threads of a warp.
// The threads go on here also if it is not, and that is a mistake of the kernel.
#pragma once

#include <stdbool.h>

#include "kernels/object.h"

struct barriers {
    const struct object *object;
    const struct kernel_context *context;
    unsigned waiting[BARRIERS], arrived[BARRIERS];  // threads; those that arrived went on at once
};

void barriers_open(struct barriers *barriers, const struct object *object, const struct kernel_context *context);

// A thread has come to a barrier, with what it says of it in its operands. False: there is no such barrier.
bool barrier_meet(struct barriers *barriers, const struct kernel_thread *thread);

// Lets the threads go on that wait at barriers which are complete; `left` counts the threads that have not ended, which
// are all waited for where the code does not say for how many. Returns whether any goes on.
bool barriers_resolve(struct barriers *barriers, struct kernel_thread *const *threads, unsigned count, unsigned left);
