// Races of the threads of a block in shared memory.
//
// For each byte the last write and two reads by different threads are known. Two accesses of different threads, one of
// them a write, race, unless a barrier of the block lies between them, or, of threads of one warp, something that the
// lanes of the warp do together. Of blocks that take turns some races are missed, and none is invented.
#pragma once

#include "kernels/abi.h"

void shared_checks_begin(void);  // a kernel begins
void shared_checks_order_block(void);
void shared_checks_order_warp(uint32_t warp);
void shared_checks_end(void);  // before it is told what was wrong

// Called by kernels, before an access to shared memory: its size, kind and state space, its instruction, its thread.
void quiesce_kernel_shared(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                           uint32_t thread);
// All threads of a block have come to a barrier.
void quiesce_kernel_barrier(struct kernel_context *context);
