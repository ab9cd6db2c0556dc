// All threads of a block at once, as long as they wait at the same places: the compiled kernel runs them in loops
// (quiesce.simulator.kernels.translation.work_group_vectorisation), which is much faster than one thread after another.
#pragma once

#include <stdbool.h>

#include "kernels/abi.h"
#include "kernels/object.h"

// Runs all threads from one state on, 0 at the beginning, as far as they come together. Returns 0: all have ended; 1:
// each of them is at a place of its own, and goes on by itself; or how the kernel ended, an enum kernel_end.
int together_run(const struct object *object, struct kernel_context *context, uint32_t from);

// After that: puts a thread where it is. True: it waits, or is ready to go on; false: it has ended.
bool together_part(const struct object *object, const struct kernel_context *context, unsigned number,
                   struct kernel_thread *thread);

// Whether all threads are ready to go on from one place, from which they can do so together.
bool together_again(const struct object *object, struct kernel_thread *const *threads, unsigned count);
