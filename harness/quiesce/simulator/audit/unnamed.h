// The public functions of a runtime that hand no name to profilers: one run of neighbours, in a known order.
#pragma once

#include "references.h"

typedef struct {
    int first;  // the number of the first one among the frames
    int count;
    const char *const *names;
} unnamed;

// Find the run; 0 where there is none, or more than one.
int unnamed_find(unnamed *run, const frames *in, const references *by);
