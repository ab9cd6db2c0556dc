// Where a kernel is that was stopped: the block that ran is run once more, by code that tells of each round of a loop.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kernel_context;

struct round_place {
    bool is_there;
    uint32_t site, thread;
};

// Called by kernels, for each round of a loop. Does not return after very many of them.
void quiesce_kernel_round(struct kernel_context *context, uint32_t site, uint32_t thread);

void rounds_begin(void);
struct round_place rounds_end(void);  // of the last of the many rounds; nothing, if there were fewer
