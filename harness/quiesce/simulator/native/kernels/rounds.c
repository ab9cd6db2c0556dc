#include "kernels/rounds.h"

#include "kernels/watch.h"

enum { ROUNDS_MAX = 1 << 25 };

static uint32_t left;
static struct round_place last;

void rounds_begin(void) {
    left = ROUNDS_MAX;
    last.is_there = false;
}

void quiesce_kernel_round(struct kernel_context *context, uint32_t site, uint32_t thread) {
    (void)context;
    if (--left) return;
    last = (struct round_place){true, site, thread};
    watch_leave(ENDED_BY_USER);
}

struct round_place rounds_end(void) { return last; }
