// Who used each word of shared memory, of words whose bytes were always used together (shared_checks.h). Compiled
// kernels look here themselves, and note what they use where nobody meets another one
// (quiesce.simulator.kernels.translation.access_recording has the same layout).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/lane_order.h"

// A write, and reads by two threads.
enum { WRITTEN, READ, READ_TOO, TOUCHES_OF_WORD };

// When and by whom something was touched: the moment (32 bits), the warp (5), the moment of the warp (22) and the lane
// (5). 0: never.
typedef uint64_t stamp;

struct last_touch {
    stamp when;
    uint32_t site, own;  // see lane_order.h
};

struct cell {
    struct last_touch touched[TOUCHES_OF_WORD];
};

// A change by an atomic operation.
enum { CHANGES_OF_WORD = 2 };  // by two threads
struct change {
    struct last_touch touch;
    uint32_t bytes;  // of the word, a bit for each
};

enum { WORD_BYTES = 4, SHARED_WORDS_MAX = SHARED_BYTES_MAX / WORD_BYTES };
#define NO_TURN UINT64_MAX

struct shared_words {
    uint64_t turn;    // of the block whose kernel may note what it uses by itself; or NO_TURN
    uint32_t moment;  // barriers and beginnings of blocks so far
    uint32_t changed;  // the last moment with changes by atomic operations
    uint64_t changing;  // of the block whose kernel may note changes by itself, of words that are not used otherwise
    uint32_t lanes_moments[LANE_CLOCKS][WARPS_MAX];
    struct cell all[SHARED_WORDS_MAX];
    struct change changes[SHARED_WORDS_MAX][CHANGES_OF_WORD];
};

_Static_assert(sizeof(struct cell) == 48, "a cell as compiled code knows it");
_Static_assert(sizeof(struct change) == 24, "a change as compiled code knows it");
_Static_assert(offsetof(struct shared_words, all) == 280, "the words as compiled code knows them");

extern _Thread_local struct shared_words *shared_words;  // of the block that this thread runs

static inline uint32_t thread_of(stamp when) {
    return (uint32_t)(when >> 27 & (WARPS_MAX - 1)) * WARP_THREADS + (uint32_t)(when & (WARP_THREADS - 1));
}

static inline bool are_of_one_warp(uint32_t thread, uint32_t other) {
    return thread / WARP_THREADS == other / WARP_THREADS;
}

static inline stamp stamp_of(enum lane_clock clock, uint32_t thread) {
    uint32_t warp = thread / WARP_THREADS, lane = thread % WARP_THREADS;
    uint32_t low = warp << 27 | shared_words->lanes_moments[clock][warp] << 5 | lane;
    return (stamp)shared_words->moment << 32 | low;
}

static inline struct last_touch touch_of(enum lane_clock clock, uint32_t thread, uint32_t site) {
    return (struct last_touch){stamp_of(clock, thread), site, lane_count(clock, thread)};
}

// Since the last barrier of the block. Most touches are older than that, or of the same thread.
static inline bool is_by_other_now(stamp when, uint32_t thread) {
    return when >> 32 == shared_words->moment && thread_of(when) != thread;
}

static inline bool is_unordered_in_warp(const struct last_touch *touch, enum lane_clock clock, uint32_t thread) {
    stamp then = touch->when, now = stamp_of(clock, thread);
    return !((then ^ now) >> 5) && !lane_knows(clock, thread, thread_of(then), (uint16_t)touch->own);
}

static inline bool is_unordered_touch(const struct last_touch *touch, enum lane_clock clock, uint32_t thread) {
    if (!is_by_other_now(touch->when, thread)) return false;
    return !are_of_one_warp(thread, thread_of(touch->when)) || is_unordered_in_warp(touch, clock, thread);
}
