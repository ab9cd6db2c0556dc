// What is linked, and what comes of it: an image that holds its inputs, so that as a module it has the functions and
// variables that they have. Where one of them can't be looked through, neither can it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "machine/status.h"

// Kinds of inputs, of both vendors (CUjitInputType, hipJitInputType).
enum link_input {
    LINK_CUBIN,
    LINK_PTX,
    LINK_FATBINARY,
    LINK_OBJECT,
    LINK_LIBRARY,
    LINK_NVVM,
    LINK_BITCODE = 100,
    LINK_SPIRV = 103,
};

struct link_inputs {
    struct link_piece {
        char *content;  // and a NUL behind
        size_t bytes;
    } *pieces;
    unsigned count;
    bool opaque;  // one of them can't be looked through
};

// Adds a copy.
enum status link_inputs_add(struct link_inputs *inputs, int kind, const void *content, size_t bytes);
enum status link_inputs_add_file(struct link_inputs *inputs, int kind, const char *path);

// The image, which becomes the caller's.
enum status link_inputs_write(const struct link_inputs *inputs, char **image, size_t *bytes);

void link_inputs_free(struct link_inputs *inputs);
