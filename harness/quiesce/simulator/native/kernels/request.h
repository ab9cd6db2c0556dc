// The compiler, which is a process of the run's own (kernels/server): asked by a socket in the run's folder.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "code/ptx.h"

struct answer {
    bool is_refused;  // the content is a sentence that says why
    char *content;    // and a NUL behind; the caller's. NULL: no memory is left
    size_t bytes;
};

enum object_kind {
    OBJECT_USUAL,
    OBJECT_ONE_BY_ONE,  // each thread runs by itself, so that the runtime may choose their order
    OBJECT_TRACED,      // it tells of each round of a loop (rounds.h)
    OBJECT_BACKWARDS,   // its threads run from the last to the first
    OBJECT_ROWS,        // rows of its threads run together, however long that takes to compile
};

// The text of PTX without the bodies of functions (machine/upcalls.h).
char *request_declarations(const struct ptx *ptx);

struct answer request_kernel(const struct ptx *ptx, const char *name, enum object_kind kind);

// Where the vendor's compiler of that name and headers are for this process, in lines (compilers/toolkit.c). It needs
// no lock.
struct answer request_toolkit(const char *library);

void requests_close(void);
