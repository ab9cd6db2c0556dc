// How a kernel uses bytes, and of how many ranges one note is (touched.h, beside.h).
#pragma once

#include <stdint.h>

enum touch {
    TOUCH_READ,
    TOUCH_WRITE,
    TOUCH_STRONG_READ,   // volatile, relaxed, acquire: it may take part in an order of the kernels' own
    TOUCH_STRONG_WRITE,  // volatile, relaxed, release
    TOUCH_ATOMIC,        // reads and writes at once
    TOUCHES,
};

// How many ranges of the same size there are, and how far from each other they begin. `plane`: which of those that one
// instruction goes on with at the same time.
struct touched_rows {
    uint64_t pitch;
    uint32_t count, plane;
};
