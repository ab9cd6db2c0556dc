// In which order the blocks and the threads of a launch run. Any order is one that a device may take.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// An order of numbers: where one comes is a multiple of its own place, which shares no factor with their count.
struct permutation {
    uint64_t factor, offset, count;
};

struct order {
    struct permutation blocks, warps;
    bool is_backwards;  // the lanes of each warp begin with the last one
};

// The orders of a launch with so many blocks and threads: 0 is that of their numbers, and 1 the one from the last to
// the first. All others come from a seed.
struct order order_numbered(uint64_t number, uint64_t seed, const uint32_t blocks[3], const uint32_t threads[3]);

static inline uint64_t permuted(const struct permutation *permutation, uint64_t place) {
    __extension__ typedef unsigned __int128 wide;
    if (permutation->factor == 1 && !permutation->offset) return place;
    return (uint64_t)(((wide)permutation->factor * place + permutation->offset) % permutation->count);
}
