// Whether a round of a kernel whose threads only look at memory has changed anything at all. If not, the next round is
// the same, and so are all others: the threads wait for ever.
#pragma once

#include <stdbool.h>

#include "kernels/checks.h"

// What a thread looked at first in a round.
struct looked {
    bool is_there;
    uint64_t address;
    uint32_t bytes, thread, site, block[3];
};

// Between these two each access of a kernel has to come to the runtime. The first one returns whether it does. The
// second one says whether the memory of the device is as it was, and the host can't change what was looked at.
// `awaited`: of that the first that work of other streams could change, for no thread of this launch has written it.
bool stillness_begin(void);
bool stillness_end(struct looked *first, struct looked *awaited);

bool stillness_is_begun(void);
