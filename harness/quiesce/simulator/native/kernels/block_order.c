#include "kernels/block_order.h"

#include <stdlib.h>

#include "kernels/abi.h"
#include "kernels/watch.h"

enum { RELEASES_MAX = 1 << 22, NOBODYS = 0 };

struct block_clock {
    uint32_t met, fenced, fenced_for_all;  // the last barrier and the last fences
    uint32_t told;           // when it wrote last what others look at
    uint32_t looked, knows;  // when it looked at what others write, and up to which release it knows all
    uint32_t released;       // the fence before its last release
    uint32_t last;           // of its releases; 0: none
    struct {
        uint32_t met, waited;  // at a barrier, and at anything
    } warps[BLOCK_THREADS_MAX / WARP_THREADS];
};

// What a block did before the fence is known to who knows this moment.
static struct release {
    uint32_t fence, moment, before;  // before: the release before it, of the same block
} *releases;
static uint32_t release_count, release_room;

static struct block_clock *clocks;
static uint32_t now = 1, begun;
static bool is_full;

bool block_order_begin(uint64_t blocks) {
    if (blocks > GRID_BLOCKS_MAX || now > UINT32_MAX / 2) return false;
    clocks = calloc(blocks, sizeof *clocks);
    release_count = NOBODYS + 1;
    is_full = false;
    begun = ++now;
    return clocks != NULL;
}

void block_order_end(void) {
    free(clocks);
    free(releases);
    clocks = NULL;
    releases = NULL;
    release_room = 0;
}

uint32_t block_order_now(void) { return now; }
uint32_t block_order_begun(void) { return begun; }
bool block_order_is_full(void) { return is_full; }

static uint32_t next_moment(void) {
    if (now == UINT32_MAX) is_full = true;
    return is_full ? now : ++now;
}

void block_order_fence(uint32_t block, bool is_for_all_blocks) {
    clocks[block].fenced = next_moment();
    if (is_for_all_blocks) clocks[block].fenced_for_all = now;
}

void block_order_meet(uint32_t block) { clocks[block].met = next_moment(); }

void block_order_lanes_meet(uint32_t block, uint32_t warp, bool is_barrier) {
    clocks[block].warps[warp].waited = next_moment();
    if (is_barrier) clocks[block].warps[warp].met = now;
}

static bool make_room(void) {
    if (release_count < release_room) return true;
    uint32_t wanted = release_room ? 2 * release_room : 1024;
    watch_hold();
    struct release *more = wanted > RELEASES_MAX ? NULL : realloc(releases, wanted * sizeof *releases);
    watch_release();
    if (!more) return false;
    releases = more;
    release_room = wanted;
    return true;
}

uint32_t block_order_release(uint32_t block, bool is_for_others) {
    struct block_clock *clock = &clocks[block];
    if (is_for_others) clock->told = now;
    if (!clock->fenced_for_all) return clock->knows;
    if (clock->fenced_for_all != clock->released) {
        if (!make_room()) {
            is_full = true;
            return clock->knows;
        }
        releases[release_count] = (struct release){clock->fenced_for_all, next_moment(), clock->last};
        clock->released = clock->fenced_for_all;
        clock->last = release_count++;
    }
    uint32_t made = releases[clock->last].moment;
    return made > clock->knows ? made : clock->knows;
}

void block_order_acquire(uint32_t block, uint32_t released) {
    struct block_clock *clock = &clocks[block];
    clock->looked = now;
    if (released > clock->knows) clock->knows = released;
}

// Of the releases that are known the last one covers most.
static bool is_released(const struct block_clock *other, uint32_t moment, uint32_t known) {
    uint32_t at = other->last;
    while (at && releases[at].moment > known) at = releases[at].before;
    return at && moment < releases[at].fence;
}

bool block_order_knows(uint32_t thread, uint32_t other, uint32_t moment, bool other_read) {
    if (thread == other) return true;
    uint32_t block = thread / BLOCK_THREADS_MAX, warp = thread % BLOCK_THREADS_MAX / WARP_THREADS;
    const struct block_clock *clock = &clocks[block];
    if (other / BLOCK_THREADS_MAX != block) {
        const struct block_clock *others = &clocks[other / BLOCK_THREADS_MAX];
        if (other_read && others->told >= moment && clock->looked >= moment) return true;
        return is_released(others, moment, clock->knows);
    }
    if (moment < clock->met || (moment < clock->fenced && moment < clock->looked)) return true;
    if (thread / WARP_THREADS != other / WARP_THREADS) return false;
    return moment < (other_read ? clock->warps[warp].waited : clock->warps[warp].met);
}
