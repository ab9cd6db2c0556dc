// Rows of functions that compute. All have one shape: the words and floating-point numbers of a call as the System V
// convention has them. quiesce.libraries knows how many of them a function takes, and what they mean.
//
// These functions have another prefix than those of handles: a look-alike library leads to them only while libraries
// compute (stubs.py).
#pragma once

#include "kernels/hosted.h"
#include "libraries/calls.h"

// `stream`: a word of the call; NULL: that of the handle.
int library_compute(const char *name, const struct library *library, uint64_t handle, const uint64_t *stream,
                    const uint64_t *words, const double *floats);

#define ON_STACK(at) uint64_t at##0, uint64_t at##1, uint64_t at##2, uint64_t at##3, uint64_t at##4
#define WORDS                                                                                                       \
    uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, double x0, double x1, double x2,  \
        double x3, double x4, double x5, double x6, double x7, ON_STACK(b), ON_STACK(c), ON_STACK(d), ON_STACK(e),    \
        ON_STACK(f)
#define TAKEN(at) at##0, at##1, at##2, at##3, at##4
#define WORDS_TAKEN                                                                            \
    (const uint64_t[HOSTED_WORDS]){a0,       a1,       a2,       a3,       a4,      a5,        \
                                   TAKEN(b), TAKEN(c), TAKEN(d), TAKEN(e), TAKEN(f)},          \
        (const double[HOSTED_FLOATS]) { x0, x1, x2, x3, x4, x5, x6, x7 }

#define COMPUTED(name) computed_##name
#define COMPUTES_WITH(library, handle, name) \
    EXPORT int COMPUTED(name)(WORDS) { return library_compute(#name, &library, handle, NULL, WORDS_TAKEN); }
#define COMPUTES(library, name) COMPUTES_WITH(library, a0, name)
#define COMPUTES_ON(library, stream, name) \
    EXPORT int COMPUTED(name)(WORDS) { return library_compute(#name, &library, a0, &stream, WORDS_TAKEN); }
