// Races of threads of one launch in memory of the device, looked for in two ways. While a launch runs in several orders
// (explore.h), all of them are, in the first order: then every access comes here. In the first launches of each kernel
// those of several blocks are, for little more time: many accesses are noted as rows (memory_rows.h), and after so many
// others as a launch may have nothing more is looked for.
//
// Of two accesses of different threads to the same bytes one has to be a write that changes them. Atomic operations do
// not race with each other, and what waits for a value (volatile, relaxed, acquire) races with no write. A read before
// an atomic operation of the same thread is a guess, which the operation verifies.
#pragma once

#include <stdbool.h>

#include "kernels/checks.h"

enum races { RACES_OF_ALL, RACES_OF_BLOCKS };

// A launch of so many blocks begins. False: it is not looked at.
bool memory_races_begin(const char *kernel, uint64_t blocks, enum races which);
void memory_races_end(void);

// What the threads of a block are about to do in one instruction. False: each access has to come by itself.
bool memory_races_see_range(const struct kernel_context *context, const struct kernel_range *range);

// An access that is right; `touches`: a bit for each kind of use (touched.h).
void memory_races_see(const struct access *access, uint32_t touches, uint32_t site);

void memory_races_order_block(void);  // threads of the block that runs meet at a barrier
void memory_races_order_lanes(uint32_t warp, bool is_barrier);

// Called by kernels: a fence; whether it is for other blocks as well.
void quiesce_kernel_fence(struct kernel_context *context, uint32_t is_for_all_blocks);
