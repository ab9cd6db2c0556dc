// What the threads of a warp do together: shuffles, votes, matches, reductions (PTX ISA, "Data Movement and Conversion
// Instructions: shfl.sync", "Parallel Synchronization and Communication Instructions").
#pragma once

#include <stdbool.h>

#include "kernels/object.h"

enum thread_status { THREAD_READY, THREAD_WAITS, THREAD_DONE };

struct warp {
    const struct object *object;
    const struct kernel_context *context;
    struct kernel_thread *threads[WARP_THREADS];
    unsigned count;
};

// Lets those threads go on that all threads of their mask have come to: with the same operation and the same mask.
// Threads that have ended are waited for no longer. Returns whether any goes on.
bool warp_resolve(struct warp *warp);
