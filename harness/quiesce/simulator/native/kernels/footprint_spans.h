// Numbers of a launch that footprints are made of, and between what they lie: sizes that it decides, sums of atoms that
// differ between threads, and duties, under which these sums do not wrap (footprints.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/footprint_launch.h"

enum {
    SIZE_WORDS = 3,
    ATOM_WORDS = 3,
    TERMS_MAX = 8,
    FORM_WORDS = 2 + 2 * TERMS_MAX,
    DUTY_WORDS = 2,
    CONDITION_WORDS = 5,
    BASES_MAX = 4,
    ACCESS_WORDS = 7 + BASES_MAX,
    SIZES_MAX = 1024,
    ATOMS_MAX = 64,
    ACCESSES_MAX = 64,
    SET_MAX = 63,
};
enum atom_kind { ANYTHING, THREAD, BLOCK, ROUND, QUOTIENT, BELOW };

// No number that is known is larger. What is larger is taken for endless.
#define LIMIT ((int64_t)1 << 61)

struct span_of {
    int64_t least, most;  // -LIMIT and LIMIT: without end
};

struct form {
    int64_t constant;
    unsigned count;
    int64_t atoms[TERMS_MAX], factors[TERMS_MAX];
};

struct judging {
    const struct footprint_launch *launch;
    const int64_t *sizes, *atoms, *forms, *duties, *conditions, *accesses;
    int64_t size_count, duty_count, condition_count, access_count;
    int64_t values[SIZES_MAX];
    bool are_known[SIZES_MAX];
    struct span_of spans[ATOMS_MAX];
    bool have_span[ATOMS_MAX], asks[ATOMS_MAX];
    struct form bounds[SET_MAX];  // at most 0, as conditions say
    uint64_t held;                // the conditions that say so
};

static inline int64_t clamp(__int128 value) { return value > LIMIT ? LIMIT : value < -LIMIT ? -LIMIT : (int64_t)value; }

static inline bool is_endless(struct span_of span) { return span.least <= -LIMIT || span.most >= LIMIT; }

struct span_of span_sum(struct span_of one, struct span_of other);
struct span_of span_times(struct span_of span, int64_t factor);

void footprint_sizes(struct judging *judging);

// False: a size is not known.
bool form_read(const struct judging *judging, int64_t number, struct form *form);

struct span_of form_span(struct judging *judging, const struct form *form);
struct span_of atom_span(struct judging *judging, int64_t number);

// Whether the sums of some duties (a bit for each) are in their ranges.
bool duties_are_kept(struct judging *judging, uint64_t duties);
