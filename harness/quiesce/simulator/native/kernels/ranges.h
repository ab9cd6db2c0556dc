// What all threads of a block use of memory in one instruction, where their addresses grow evenly with their index: it
// is judged at once, before the loop over the threads runs (quiesce.simulator.kernels.translation.hoisted_checks).
#pragma once

#include "kernels/abi.h"

void ranges_begin(void);  // a launch begins: what is known of memory may no longer be so

// Called by kernels. Returns whether every access of all these ranges is right: then the loop runs, and what it writes
// counts as written. If not, nothing has happened, and the threads run with each access judged by itself. The first
// number has how many there are, and whether the loop has other accesses too.
uint32_t quiesce_kernel_ranges(struct kernel_context *context, const struct kernel_range *ranges, uint32_t word);

// Called by kernels. Returns whether registers that the threads of a block keep in an array grow evenly, and the steps.
uint32_t quiesce_kernel_line(struct kernel_context *context, const void *array, uint32_t bytes, int64_t steps[3]);
