// Whether blocks of a launch may run at the same time: what each of them may write, no other one uses. The compiler
// states in a table what accesses use, as sums of what differs between threads times what the launch decides
// (kernels/footprints in Python has the same numbers and the same words for it).
//
// An access whose place has no bounds that are known is taken to stay in the memory that its pointer points into.
#pragma once

#include "kernels/footprint_launch.h"

// Why blocks run one after another. The first ones the compiler states.
enum alone {
    ALONE_NOT,
    ALONE_NOT_UNDERSTOOD,
    ALONE_WAITS_FOR_MEMORY,
    ALONE_ORDERS_MEMORY,
    ALONE_READS_CHANGED,
    ALONE_CHANGES_FLOATS,
    ALONE_CALLS,
    ALONE_USES_TEXTURES,
    ALONE_COPIES,
    ALONE_READS_PLACE,
    ALONE_PLACE_UNKNOWN,
    ALONE_MEMORY_UNKNOWN,  // from here on the launch decides
    ALONE_WRITES_MEET,
    ALONE_READS_WRITTEN,
    ALONE_CHANGES_MEET,
};

// In words, after "it runs on one core: ".
const char *alone_in_words(enum alone why);

enum alone footprints_judge(const struct footprint_launch *launch);
