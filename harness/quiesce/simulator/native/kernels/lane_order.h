// In which order lanes of a warp did what they did to memory.
//
// A barrier of the warp orders what lanes that take part did before with what they do after, and nothing of others.
// Shuffles, votes, matches, reductions and operations on matrices order no memory (CUDA C++ Programming Guide, "Warp
// Shuffle Functions": "These intrinsics do not imply a memory barrier"). But lanes wait for each other there, so that
// reads before them have their values when a write after them is made.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/abi.h"

enum lane_clock { CLOCK_OF_WRITES, CLOCK_OF_READS, LANE_CLOCKS };
enum { WARPS_MAX = BLOCK_THREADS_MAX / WARP_THREADS, LANES_MOMENT_BITS = 22 };

// Each lane counts how often it met some lanes without the whole warp, and knows up to which count of each other lane
// all comes before what it does now.
struct warp_clock {
    bool is_split;  // some lanes met by themselves since the whole warp met
    uint16_t own[WARP_THREADS], known[WARP_THREADS][WARP_THREADS];
};

struct lanes {
    struct warp_clock clocks[LANE_CLOCKS][WARPS_MAX];
    unsigned split;  // how many are split
};
extern _Thread_local struct lanes *lane_state;  // of the block that this thread runs

static inline uint16_t lane_count(enum lane_clock clock, uint32_t thread) {
    return lane_state->clocks[clock][thread / WARP_THREADS].own[thread % WARP_THREADS];
}

// Whether what another lane did when it had counted so far comes before what a thread does now. Both did it since the
// whole warp met last.
static inline bool lane_knows(enum lane_clock clock, uint32_t thread, uint32_t other, uint16_t count) {
    return count < lane_state->clocks[clock][thread / WARP_THREADS].known[thread % WARP_THREADS][other % WARP_THREADS];
}

// Lanes of a warp meet; `are_all`: no other lane is left out. `moment`: how often the whole warp met. True: it begins
// again with 0.
bool lanes_meet(enum lane_clock clock, uint32_t warp, uint32_t lanes, bool are_all, uint32_t *moment);
void lanes_forget(void);  // no lane knows of another one
