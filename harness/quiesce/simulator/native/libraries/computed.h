// Rows of functions that compute. All are called with the words and floating-point numbers of a call as the System V
// convention has them. quiesce.libraries knows how many of them a function takes, and what they mean.
//
// These functions have another prefix than those of handles: a look-alike library leads to them only while libraries
// compute (stubs.py).
#pragma once

#include "kernels/hosted.h"
#include "libraries/calls.h"

// A function that computes, and who takes its calls: for most of them computed_run. `handle` and `stream` are numbers
// of arguments; a stream of OF_HANDLE is that of the handle.
struct computed {
    int (*run)(const struct computed *function, const uint64_t *words, const double *floats);
    const char *name;
    const struct library *library;
    int handle, stream;
};
enum { OF_HANDLE = -1 };

int computed_run(const struct computed *function, const uint64_t *words, const double *floats);

// The same for a handle that is not an argument. `stream`: a word of the call; NULL: that of the handle.
int library_compute(const char *name, const struct library *library, uint64_t handle, const uint64_t *stream,
                    const uint64_t *words, const double *floats);

// Each leaves the arguments where they are and says which function it is; quiesce_computed reads them, once for all. As
// functions in C with all these arguments, a thousand rows would take a third of the time that the runtime compiles.
#define COMPUTED(name) computed_##name
#define COMPUTES_BY(run, library, handle, stream, name) ROW(COMPUTED(name), run, library, handle, stream, name)
#define ROW(symbol, ...) ROW_OF(symbol, __VA_ARGS__)  // the symbol's own macros first
#define ROW_OF(symbol, function, library, handle, stream, name)                                            \
    __attribute__((used)) const struct computed of_##symbol = {function, #name, &library, handle, stream}; \
    EXPORT __attribute__((naked)) void symbol(void) {                                                      \
        __asm__("leaq of_" #symbol "(%rip), %r11\n\tjmp quiesce_computed@PLT");                            \
    }
#define COMPUTES_ON(library, stream, name) COMPUTES_BY(computed_run, library, 0, stream, name)
#define COMPUTES(library, name) COMPUTES_ON(library, OF_HANDLE, name)
