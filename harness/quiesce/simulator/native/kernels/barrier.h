// The sixteen barriers of a block (PTX ISA, "bar.sync, bar.red, bar.arrive").
#pragma once

#include <stdbool.h>

#include "kernels/abi.h"

struct barriers {
    unsigned waiting[BARRIERS], arrived[BARRIERS];  // threads; those that arrived went on at once
};

void barriers_open(struct barriers *barriers);

// A thread has come to a barrier, with what it says of it in its operands. False: there is no such barrier.
bool barrier_meet(struct barriers *barriers, const struct kernel_thread *thread);

// Lets the threads go on that wait at barriers which are complete; `left` counts the threads that have not ended, which
// are all waited for where the code does not say for how many. Returns whether any goes on.
bool barriers_resolve(struct barriers *barriers, struct kernel_thread *const *threads, unsigned count, unsigned left);
