// Fetches from textures as the CUDA C Programming Guide has them ("Texture Fetching"): where a coordinate leads, and
// how numbers between texels are mixed.
#pragma once

#include "kernels/texel.h"

// What an instruction asks for, and gets. kernels/translation/instructions/textures has the same layout and numbers.
struct texel_area {
    uint32_t coordinates[3], layer;
    int32_t offsets[3];
    uint32_t reserved;
    union {
        uint32_t words[8];
        uint16_t halves[16];
        unsigned char bytes[32];
    } content;
};

enum {
    GEOMETRY_AXES = 7,  // 1 to 3
    GEOMETRY_CUBE = 4,  // instead of a number of axes
    GEOMETRY_IS_LAYERED = 1 << 3,
    FETCH_FLOATS = 1 << 4,  // coordinates are floats, else integers
    FETCH_HALVES = 1 << 5,  // so are results
    FETCH_GATHERS = 6,      // the place of the component that is gathered, from 1; 0: none is
};

// Reads what the area asks for, and writes it there.
void texture_sample(const struct image *image, const struct sampler *sampler, uint32_t word, struct texel_area *area,
                    const struct texel_judge *judge);
