// Races of the threads of a block in shared memory.
//
// For each byte the last write and two reads by different threads are known. Two accesses of different threads, one of
// them a write, race, unless a barrier of the block lies between them, or, of threads of one warp, a barrier of the
// warp that both take part in (lane_order.h). Of blocks that take turns some races are missed, and none is invented.
#pragma once

#include <stdbool.h>

#include "kernels/abi.h"

void shared_checks_begin(void);  // a kernel begins
void shared_checks_order_block(void);
// Lanes of a warp have waited for each other, at a barrier or at something else that they do together.
void shared_checks_order_lanes(uint32_t warp, uint32_t lanes, bool are_all, bool is_barrier);
void shared_checks_end_block(void);  // a block is at its end
void shared_checks_end(void);  // before it is told what was wrong

// For a thread that runs blocks beside others (beside.h): prepares it, and returns its words of shared memory, or NULL.
// The thread enters before its first block and leaves after its last one. Then guesses of all are gathered.
struct shared_words *shared_checks_beside(unsigned number);
void shared_checks_enter(unsigned number);
void shared_checks_leave(void);
void shared_checks_gather(unsigned count, const uint32_t grid[3]);
void shared_checks_close(void);

// Accesses of all threads of a block, before their loop runs: those that were added count when they are kept, and a
// beginning drops the others. False: a thread may race, or one is outside; then each access has to come by itself.
void shared_checks_begin_ranges(const struct kernel_context *context);
bool shared_checks_add_range(const struct kernel_context *context, const struct kernel_range *range);
void shared_checks_keep_ranges(void);

// Called by kernels, before an access to shared memory: its size, kind and state space, its instruction, its thread.
void quiesce_kernel_shared(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                           uint32_t thread);
// In place of quiesce_kernel_check, of an access by a generic address, which may be one of shared memory.
void *quiesce_kernel_check_any(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                               uint32_t thread, const void *frame);
// A thread ends a group of asynchronous copies, and waits for all but the last ones of its groups.
void quiesce_kernel_copies_commit(struct kernel_context *context, uint32_t thread);
void quiesce_kernel_copies_wait(struct kernel_context *context, uint32_t groups_left, uint32_t thread);
// Lanes of a warp have met, as those of shared_checks_order_lanes() have; of a kernel that runs warps as rows.
void quiesce_kernel_lanes(struct kernel_context *context, uint32_t warp, uint32_t lanes, bool are_all, bool is_barrier);
// All threads of a block have come to a barrier.
void quiesce_kernel_barrier(struct kernel_context *context);
