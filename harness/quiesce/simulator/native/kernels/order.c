#include "kernels/order.h"

#include "kernels/abi.h"
#include "machine/random.h"

static uint64_t common_factor(uint64_t one, uint64_t other) {
    while (other) {
        uint64_t rest = one % other;
        one = other;
        other = rest;
    }
    return one;
}

static struct permutation any(uint64_t *state, uint64_t count) {
    uint64_t factor = 1 + random_next(state) % count, offset = random_next(state) % count;
    while (common_factor(factor, count) != 1) factor = factor % count + 1;
    return (struct permutation){factor, offset, count};
}

static struct permutation backwards(uint64_t count) { return (struct permutation){count - 1, count - 1, count}; }

static struct permutation usual(uint64_t count) { return (struct permutation){1, 0, count}; }

static uint64_t product(const uint32_t size[3]) { return (uint64_t)size[0] * size[1] * size[2]; }

struct order order_numbered(uint64_t number, uint64_t seed, const uint32_t grid[3], const uint32_t threads[3]) {
    uint64_t blocks = product(grid), warps = (product(threads) + WARP_THREADS - 1) / WARP_THREADS;
    if (number == 0) return (struct order){usual(blocks), usual(warps), false};
    if (number == 1) return (struct order){backwards(blocks), backwards(warps), true};
    uint64_t state = seed ^ number << 32;
    struct permutation of_blocks = any(&state, blocks);
    return (struct order){of_blocks, any(&state, warps), number % 2};
}
