#include "kernels/lane_order.h"

#include <string.h>

static bool meet_all(struct warp_clock *clock, uint32_t *moment) {
    if (clock->is_split) {
        memset(clock, 0, sizeof *clock);
        lane_state->split--;
    }
    *moment = (*moment + 1) % (1 << LANES_MOMENT_BITS);
    return !*moment;
}

void lanes_forget(void) {
    if (lane_state->split) memset(lane_state->clocks, 0, sizeof lane_state->clocks);
    lane_state->split = 0;
}

static void meet_some(struct warp_clock *clock, uint32_t lanes) {
    uint16_t known[WARP_THREADS] = {0};
    for (unsigned lane = 0; lane < WARP_THREADS; lane++) {
        if (!(lanes >> lane & 1)) continue;
        for (unsigned other = 0; other < WARP_THREADS; other++)
            if (clock->known[lane][other] > known[other]) known[other] = clock->known[lane][other];
    }
    for (unsigned lane = 0; lane < WARP_THREADS; lane++)
        if (lanes >> lane & 1) known[lane] = ++clock->own[lane];
    for (unsigned lane = 0; lane < WARP_THREADS; lane++)
        if (lanes >> lane & 1) memcpy(clock->known[lane], known, sizeof known);
    lane_state->split += !clock->is_split;
    clock->is_split = true;
}

static bool is_full(const struct warp_clock *clock) {
    for (unsigned lane = 0; lane < WARP_THREADS; lane++)
        if (clock->own[lane] == UINT16_MAX) return true;
    return false;
}

// A count that has come to its end begins again, as if all lanes had met: a race may be missed, and none is invented.
bool lanes_meet(enum lane_clock clock, uint32_t warp, uint32_t lanes, bool are_all, uint32_t *moment) {
    struct warp_clock *met = &lane_state->clocks[clock][warp % WARPS_MAX];
    if (are_all || is_full(met)) return meet_all(met, moment);
    meet_some(met, lanes);
    return false;
}
