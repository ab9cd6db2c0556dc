// Arrays: device memory in rows of elements, behind a handle. Here the rows lie one behind the other, the handle is the
// address of the first, and only these functions take it. Textures and surfaces name one, or linear memory.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/stream.h"

struct channel_format {  // cudaChannelFormatDesc, hipChannelFormatDesc: bits of four channels, kind
    int bits[4], kind;
};

struct extent {  // cudaExtent, hipExtent: the width in elements of an array, in bytes elsewhere
    size_t width, height, depth;
};

struct position {
    size_t x, y, z;
};

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

struct array {
    struct array *next;
    uint64_t hidden_address;  // see hidden.h
    struct channel_format format;
    struct extent extent;  // height and depth as they were asked for: 0 where there is none
    unsigned flags;
    size_t element_bytes;
};

// One plane of memory that is copied from or to: where it begins, and what lies between its rows.
struct plane {
    uint64_t address, pitch, slice;
};

enum status array_create(const struct channel_format *format, struct extent extent, unsigned flags, uint64_t *handle);
enum status array_free(uint64_t handle);
const struct array *array_find(uint64_t handle);  // NULL: no array is there

// A part of an array: x in bytes, as the functions for two dimensions have it. INVALID_VALUE where it does not fit.
enum status array_part(uint64_t handle, struct position at, struct extent bytes, struct plane *plane);

// Copies as many planes as the extent is deep; the pieces are in order on the stream.
enum status array_copy(struct stream *stream, const struct copy_3d *copy, bool asynchronous);

// Textures and surfaces, which are one kind of handle.
enum { RESOURCE_BYTES = 64, TEXTURE_BYTES = 72 };
enum status texture_create(const void *resource, const void *texture, size_t texture_bytes, uint64_t *handle);
enum status texture_destroy(uint64_t handle);
const void *texture_resource(uint64_t handle);     // NULL: no such texture
const void *texture_description(uint64_t handle);

void arrays_close(void);
