#include "kernels/touched_order.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

static bool is_in_order(const struct touched_key *keys, size_t count) {
    for (size_t i = 1; i < count; i++) {
        const struct touched_key *a = &keys[i - 1], *b = &keys[i];
        if (a->touch > b->touch || (a->touch == b->touch && a->place > b->place)) return false;
    }
    return true;
}

static uint32_t digit_of(const struct touched_key *key, uint64_t least, unsigned shift) {
    return shift < 64 ? (uint32_t)((key->place - least) >> shift) & (DIGITS - 1) : key->touch;
}

// Moves keys to where one digit puts them.
static void move(const struct touched_key *from, struct touched_key *to, size_t count, uint64_t least, unsigned shift) {
    uint32_t ends[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++) ends[digit_of(&from[i], least, shift)]++;
    for (unsigned i = 0; i < DIGITS; i++) {
        uint32_t own = ends[i];
        ends[i] = sum;
        sum += own;
    }
    for (size_t i = 0; i < count; i++) to[ends[digit_of(&from[i], least, shift)]++] = from[i];
}

struct touched_key *touched_sort(struct touched_key *keys, struct touched_key *spare, size_t count) {
    uint64_t least = UINT64_MAX, most = 0;
    if (is_in_order(keys, count)) return keys;
    for (size_t i = 0; i < count; i++) {
        if (keys[i].place < least) least = keys[i].place;
        if (keys[i].place > most) most = keys[i].place;
    }
    for (unsigned shift = 0; shift <= 64; shift += DIGIT_BITS) {
        if (shift < 64 && !((most - least) >> shift)) shift = 64;  // only the kind of use is left
        move(keys, spare, count, least, shift);
        struct touched_key *sorted = spare;
        spare = keys;
        keys = sorted;
        if (shift == 64) break;
    }
    return keys;
}
