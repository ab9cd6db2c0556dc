// Texels: where one lies, and its channels as kernels get them.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "memory/texture.h"

// Who is asked for each texel that is used: returns where its bytes are to be read, or written.
struct texel_judge {
    void *(*place)(const struct texel_judge *judge, uint64_t address, unsigned bytes, bool writes);
};

struct texel {
    int64_t x, y, z;  // z: a plane or a layer
};

struct channels {
    uint32_t words[4];
};

static inline unsigned texel_bytes(const struct image *image) { return image->channels * image->channel_bytes; }

// Whether channels are numbers with a fraction when they are read.
bool texel_is_number(const struct image *image, const struct sampler *sampler);

// The channels at a place that is inside: floats, or integers with 32 bits.
struct channels texel_read(const struct image *image, const struct sampler *sampler, struct texel at,
                           const struct texel_judge *judge);

uint64_t texel_address(const struct image *image, struct texel at);

static inline float texel_float(uint32_t word) {
    float number;
    memcpy(&number, &word, sizeof number);
    return number;
}

static inline uint32_t texel_word(float number) {
    uint32_t word;
    memcpy(&word, &number, sizeof word);
    return word;
}
