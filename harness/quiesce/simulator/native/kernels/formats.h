// Numbers in formats of IEEE 754 with fewer bits than a double.
#pragma once

#include <stdint.h>
#include <string.h>

// How a result that lies between two numbers is rounded. kernels/translation/instructions/floating_point has the same.
enum kernel_rounding { ROUND_NEAREST_EVEN, ROUND_TO_ZERO, ROUND_DOWN, ROUND_UP, ROUND_NEAREST_AWAY };

// Rounds a double once to a format with that many bits for the exponent and the fraction; an enum kernel_rounding.
uint32_t format_narrow(double number, unsigned exponent_bits, unsigned fraction_bits, uint32_t rounding);

double format_widen(uint32_t bits, unsigned exponent_bits, unsigned fraction_bits);

// The formats of eight bits that machine learning uses: the largest number stands for all that is larger.
uint16_t format_narrow_e4m3(double number);
uint16_t format_narrow_e5m2(double number);
double format_widen_e4m3(uint32_t bits);  // it has no infinity, and one NaN

static inline uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static inline double number_of(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}
