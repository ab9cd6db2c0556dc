// Who used each word of shared memory, of words whose bytes were always used together (shared_checks.h). Compiled
// kernels look here themselves, and note what they use where nobody meets another one
// (quiesce.kernels.translation.shared_words has the same layout).
#pragma once

#include <stdint.h>

#include "kernels/lane_order.h"

// A write, and reads by two threads.
enum { WRITTEN, READ, READ_TOO, TOUCHES_OF_WORD };

// When and by whom something was touched: the moment (32 bits), the warp (5), the moment of the warp (22) and the lane
// (5). 0: never.
typedef uint64_t stamp;

struct cell {
    struct {
        stamp when;
        uint32_t site, own;  // see lane_order.h
    } touched[TOUCHES_OF_WORD];
};

enum { WORD_BYTES = 4 };
#define NO_TURN UINT64_MAX

struct shared_words {
    uint64_t turn;    // of the block whose kernel may note what it uses by itself; or NO_TURN
    uint32_t moment;  // barriers and beginnings of blocks so far
    uint32_t unused;
    uint32_t lanes_moments[LANE_CLOCKS][WARPS_MAX];
    struct cell all[SHARED_BYTES_MAX / WORD_BYTES];
};

_Static_assert(sizeof(struct cell) == 48, "a cell as compiled code knows it");
_Static_assert(offsetof(struct shared_words, all) == 272, "the words as compiled code knows them");

extern struct shared_words shared_words;
