#include "kernels/texel.h"

#include "kernels/formats.h"
#include "machine/hidden.h"

uint64_t texel_address(const struct image *image, struct texel at) {
    uint64_t first = HIDDEN(image->hidden_address);
    return first + (uint64_t)at.z * image->slice + (uint64_t)at.y * image->pitch + (uint64_t)at.x * texel_bytes(image);
}

static bool is_scaled(const struct image *image, const struct sampler *sampler) {
    return sampler->scales && image->kind != TEXELS_FLOAT && image->channel_bytes < 4;
}

bool texel_is_number(const struct image *image, const struct sampler *sampler) {
    return image->kind == TEXELS_FLOAT || is_scaled(image, sampler);
}

// The number whose fifth power is given, between 0 and 1.
static double fifth_root(double power) {
    double root = 1;
    for (unsigned i = 0; i < 60; i++) {
        double fourth = root * root * root * root;
        root -= fourth > 0 ? (root * fourth - power) / (5 * fourth) : 0;
    }
    return root;
}

// How much light a byte of sRGB stands for (IEC 61966-2-1).
static double linear_of_srgb(double value) {
    if (value <= 0.04045) return value / 12.92;
    double base = (value + 0.055) / 1.055, fifth = fifth_root(base);
    return base * base * fifth * fifth;  // to the power of 2.4
}

// "the full range of the unsigned integer type is mapped to [0.0, 1.0]", and of the signed one to [-1.0, 1.0].
static uint32_t scale(const struct image *image, const struct sampler *sampler, int64_t value, unsigned channel) {
    int64_t largest = (1ll << (8 * image->channel_bytes - (image->kind == TEXELS_SIGNED))) - 1;
    double number = (double)value / (double)largest;
    if (number < -1) number = -1;
    bool is_light = sampler->is_srgb && image->channel_bytes == 1 && image->kind == TEXELS_UNSIGNED && channel < 3;
    return texel_word((float)(is_light ? linear_of_srgb(number) : number));
}

static uint32_t read_channel(const struct image *image, const struct sampler *sampler, const char *bytes,
                             unsigned channel) {
    uint32_t raw = 0;
    memcpy(&raw, bytes, image->channel_bytes);
    if (image->kind == TEXELS_FLOAT)
        return image->channel_bytes == 4 ? raw : texel_word((float)format_widen(raw, 5, 10));
    int64_t value = raw;
    unsigned bits = 8 * image->channel_bytes;
    if (image->kind == TEXELS_SIGNED && raw >> (bits - 1)) value -= 1ll << bits;
    return is_scaled(image, sampler) ? scale(image, sampler, value, channel) : (uint32_t)value;
}

// Channels that a format does not have are 0, the last is 1.
struct channels texel_read(const struct image *image, const struct sampler *sampler, struct texel at,
                           const struct texel_judge *judge) {
    unsigned bytes = texel_bytes(image);
    const char *from = judge->place(judge, texel_address(image, at), bytes, false);
    struct channels read = {{0, 0, 0, texel_is_number(image, sampler) ? texel_word(1) : 1}};
    for (unsigned i = 0; i < image->channels; i++)
        read.words[i] = read_channel(image, sampler, from + i * image->channel_bytes, i);
    return read;
}
