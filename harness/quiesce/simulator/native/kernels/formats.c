#include "kernels/formats.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

// Whether a value is rounded away from zero: `rest` is what is cut off, of `cut` bits, below the last bit that is kept.
static bool rounds_away(uint64_t kept, uint64_t rest, unsigned cut, bool negative, uint32_t rounding) {
    uint64_t half = 1ull << (cut - 1);
    switch (rounding) {
        case ROUND_TO_ZERO: return false;
        case ROUND_DOWN: return negative && rest;
        case ROUND_UP: return !negative && rest;
        case ROUND_NEAREST_AWAY: return rest >= half;
        default: return rest > half || (rest == half && (kept & 1));
    }
}

// Rounds a double once to a format of IEEE 754 with that many bits for the exponent and the fraction.
uint32_t format_narrow(double number, unsigned exponent_bits, unsigned fraction_bits, uint32_t rounding) {
    uint64_t bits = bits_of(number), fraction = bits & 0xfffffffffffffull;
    bool negative = bits >> 63;
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint32_t sign = (uint32_t)negative << (exponent_bits + fraction_bits);
    uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
    // The only NaN of PTX has all bits but the sign.
    if (exponent == 0x7ff) return fraction ? infinity | ((1u << fraction_bits) - 1) : sign | infinity;
    if (!exponent) exponent = 1;  // a subnormal double
    else fraction |= 1ull << 52;
    int biased = exponent - 1023 + (1 << (exponent_bits - 1)) - 1;
    unsigned cut = 52 - fraction_bits;
    if (biased < 1) {  // a subnormal, or nothing
        unsigned more = (unsigned)(1 - biased);
        cut = cut + more > 60 ? 60 : cut + more;
        biased = 0;
    }
    uint64_t kept = fraction >> cut, rest = fraction & ((1ull << cut) - 1);
    if (rest && rounds_away(kept, rest, cut, negative, rounding)) kept++;
    // The leading bit of a normal number adds one to the exponent; a carry does the same.
    uint64_t result = kept + ((uint64_t)(biased ? biased - 1 : 0) << fraction_bits);
    if (result < infinity) return sign | (uint32_t)result;
    bool inwards = rounding == ROUND_TO_ZERO || rounding == (negative ? ROUND_UP : ROUND_DOWN);
    return sign | (inwards ? infinity - 1 : infinity);
}

double format_widen(uint32_t bits, unsigned exponent_bits, unsigned fraction_bits) {
    uint64_t fraction = bits & ((1u << fraction_bits) - 1);
    uint64_t sign = (uint64_t)(bits >> (exponent_bits + fraction_bits) & 1) << 63;
    int largest = (1 << exponent_bits) - 1, exponent = (int)(bits >> fraction_bits) & largest, bias = largest >> 1;
    if (exponent == largest) return number_of(sign | 0x7ffull << 52 | fraction << (52 - fraction_bits));
    double number = ldexp((double)(exponent ? fraction | 1ull << fraction_bits : fraction),
                          (exponent ? exponent : 1) - bias - (int)fraction_bits);
    return number_of(bits_of(number) | sign);
}

enum { NAN_OF_BYTE = 0x7f, LARGEST_E4M3 = 0x7e, LARGEST_E5M2 = 0x7b };

uint16_t format_narrow_e4m3(double number) {
    if (isnan(number)) return NAN_OF_BYTE;
    // as a number with one more bit for the exponent, whose bias is larger by eight
    uint32_t bits = format_narrow(number * 0x1p-8, 5, 3, ROUND_NEAREST_EVEN), size = bits & 0xff;
    return (uint16_t)((size > LARGEST_E4M3 ? LARGEST_E4M3 : size) | bits >> 8 << 7);
}

uint16_t format_narrow_e5m2(double number) {
    if (isnan(number)) return NAN_OF_BYTE;
    uint32_t bits = format_narrow(number, 5, 2, ROUND_NEAREST_EVEN), size = bits & 0x7f;
    return (uint16_t)((size > LARGEST_E5M2 ? LARGEST_E5M2 : size) | (bits & 0x80));
}

double format_widen_e4m3(uint32_t bits) {
    if ((bits & NAN_OF_BYTE) == NAN_OF_BYTE) return (double)NAN;
    return format_widen((bits & 0x80) << 8 | (bits & 0x7f) << 7, 5, 10) * 256;  // a half with another bias
}
