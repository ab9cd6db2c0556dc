// In which order blocks of a launch, and threads of one block, did what they did to memory.
//
// Moments count what orders something. A block releases what it did before a fence with the first write after it that
// another block may look at, and that block knows it from its look on. What is known has no more parts than one
// moment: who knows a release knows all earlier ones. Some races are missed for that, and none is invented.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GRID_BLOCKS_MAX = 1 << 22 };

// A launch of so many blocks begins. False: they are too many, or there is no memory.
bool block_order_begin(uint64_t blocks);
void block_order_end(void);

uint32_t block_order_now(void);
uint32_t block_order_begun(void);  // the moment in which the launch began
bool block_order_is_full(void);    // moments or releases have come to their end

void block_order_fence(uint32_t block, bool is_for_all_blocks);
void block_order_meet(uint32_t block);  // its threads meet at a barrier
// Lanes of a warp meet; at something else than a barrier only their reads are over.
void block_order_lanes_meet(uint32_t block, uint32_t warp, bool is_barrier);

// A thread writes: returns what another one knows that looks at it, or 0. `is_for_others`: by an atomic operation or a
// volatile store. No fence is needed for reads before it: what is written then waits for them.
uint32_t block_order_release(uint32_t block, bool is_for_others);
void block_order_acquire(uint32_t block, uint32_t released);  // a thread looks

// Whether what a thread of the grid did in a moment comes before what another one does now.
bool block_order_knows(uint32_t thread, uint32_t other, uint32_t moment, bool other_read);
