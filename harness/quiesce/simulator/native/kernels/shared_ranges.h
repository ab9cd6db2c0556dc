// What the threads of a block used of shared memory in one instruction since the last barrier: of whole ranges a race
// is found faster than byte by byte (shared_checks.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/abi.h"

// Threads of a box, each of which uses bytes at an even distance from those of the next one on each axis.
struct shared_range {
    uint32_t offset, size;  // of the first access
    int32_t steps[3];
    uint32_t first[3], counts[3];
    uint32_t low, high;  // the first byte of all, and the one behind the last
    bool writes;
    uint32_t site;
};

// Lays an instruction's accesses out in shared memory. False: one of them is outside, or misaligned.
bool shared_range_lay_out(const struct kernel_context *context, const struct kernel_range *range,
                          struct shared_range *made);

enum { SHARED_RANGES_MAX = 192 };

// Where bytes lie that were read or written; none: `high` is 0.
struct shared_hulls {
    struct {
        uint32_t low, high;
    } of[2];
};

// Since the last barrier. `kept`: those that count; the others may still be taken back.
struct shared_ranges {
    uint32_t moment;  // see shared_checks.c
    unsigned kept, count;
    struct shared_hulls kept_hulls, hulls;
    struct shared_range all[SHARED_RANGES_MAX];
};

void shared_ranges_begin(struct shared_ranges *ranges, uint32_t moment);  // drops those that were not kept
void shared_ranges_keep(struct shared_ranges *ranges);

// Where one that is to be added is written; NULL: there is no room for it.
struct shared_range *shared_ranges_next(struct shared_ranges *ranges);

// Adds it. False: two threads may race.
bool shared_ranges_add(struct shared_ranges *ranges);
