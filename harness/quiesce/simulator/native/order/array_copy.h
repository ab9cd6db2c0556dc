// Copies in three dimensions, from and to arrays or linear memory.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "machine/status.h"
#include "memory/array.h"

struct stream;

struct pitched {  // cudaPitchedPtr, hipPitchedPtr; widths and pitch in bytes
    void *address;
    size_t pitch, width, height;
};

struct copy_3d {  // cudaMemcpy3DParms, hipMemcpy3DParms
    void *from_array;
    struct position from_at;
    struct pitched from;
    void *to_array;
    struct position to_at;
    struct pitched to;
    struct extent extent;
    int kind;
};

// Copies as many planes as the extent is deep; the pieces are in order on the stream.
enum status array_copy(struct stream *stream, const struct copy_3d *copy, bool asynchronous);
