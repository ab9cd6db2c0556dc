// Arrays: device memory in rows of elements, behind a handle. Here the rows lie one behind the other, the handle is the
// address of the first, and only these functions take it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"

struct channel_format {  // cudaChannelFormatDesc, hipChannelFormatDesc: bits of four channels, kind
    int bits[4], kind;
};

struct extent {  // cudaExtent, hipExtent: the width in elements of an array, in bytes elsewhere
    size_t width, height, depth;
};

struct position {
    size_t x, y, z;
};

struct array {
    struct array *next;
    uint64_t hidden_address;  // see hidden.h
    struct channel_format format;
    struct extent extent;  // height and depth as they were asked for: 0 where there is none
    unsigned flags;
    size_t element_bytes;
};

enum { ARRAY_IS_LAYERED = 1, ARRAY_IS_CUBE = 4 };  // flags: its depth counts layers, or the faces of cubes

// One plane of memory that is copied from or to: where it begins, and what lies between its rows.
struct plane {
    uint64_t address, pitch, slice;
};

enum status array_create(const struct channel_format *format, struct extent extent, unsigned flags, uint64_t *handle);
enum status array_free(uint64_t handle);
const struct array *array_find(uint64_t handle);  // NULL: no array is there

// A part of an array: x in bytes, as the functions for two dimensions have it. INVALID_VALUE where it does not fit.
enum status array_part(uint64_t handle, struct position at, struct extent bytes, struct plane *plane);

void arrays_close(void);
