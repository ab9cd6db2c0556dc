// What the threads of a block used of shared memory in one instruction since the last barrier: of whole ranges a race
// is found faster than byte by byte (shared_checks.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Threads whose numbers follow each other, each of which uses the bytes after those of the one before; or all the same.
struct shared_range {
    uint32_t offset, size;  // of the first access
    uint32_t thread, count;
    bool is_same, writes;
};

enum { SHARED_RANGES_MAX = 64 };

// Since the last barrier. `kept`: those that count; the others may still be taken back.
struct shared_ranges {
    uint32_t moment;  // see shared_checks.c
    unsigned kept, count;
    struct shared_range all[SHARED_RANGES_MAX];
};

// Adds one. False: two threads may race, or there is no room for it.
bool shared_ranges_add(struct shared_ranges *ranges, const struct shared_range *added);
