// Textures and surfaces: objects that name an array or linear memory, and say how kernels read it. They are one kind of
// handle.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"
#include "memory/array.h"

enum { RESOURCE_BYTES = 64, TEXTURE_BYTES = 72 };

// Where texels lie.
struct image {
    uint64_t hidden_address;  // of the first, see hidden.h
    uint64_t memory;          // the serial of the block that it lay in at first; 0: none is known
    size_t pitch, slice;      // bytes from row to row, and from plane to plane
    uint32_t width, height, depth;  // 1 where there is none
    uint32_t layers;                // 0: there are none; else the depth is 1
    unsigned channels, channel_bytes;
    enum { TEXELS_SIGNED, TEXELS_UNSIGNED, TEXELS_FLOAT } kind;
    bool is_linear;  // memory in one dimension, outside of which zeros are read
};

// How they are read (CUDA C Programming Guide, "Texture Fetching").
struct sampler {
    enum { ADDRESS_WRAP, ADDRESS_CLAMP, ADDRESS_MIRROR, ADDRESS_BORDER } address[3];
    bool filters;     // between texels; else the nearest is read
    bool scales;      // integers are read as numbers from 0 to 1, or from -1
    bool is_srgb;     // of which bytes are no linear measure
    bool normalized;  // coordinates go from 0 to 1
    float border[4];
};

struct texture {
    uint64_t serial;
    char resource[RESOURCE_BYTES], description[TEXTURE_BYTES];
    struct image image;
    struct sampler sampler;
    bool is_surface;
};

// `description` NULL: a surface. `view` NULL: the texels are read in their own format.
enum status texture_create(const void *resource, const void *description, size_t description_bytes, const void *view,
                           uint64_t *handle);
enum status texture_destroy(uint64_t handle);
const struct texture *texture_find(uint64_t handle);  // NULL: no such texture; one that was destroyed is observed
const struct texture *texture_of_kernel(uint64_t handle);  // the same for kernels, without an observation
