// Reads that meet atomic operations of other threads, and may be right: a thread that goes on only if an atomic
// operation finds what it has read, as in a loop around atomicCAS, looks at its guess without any order. A read is
// taken back if its instruction is verified at any time: an atomic operation of a thread uses what that thread read
// before.
#pragma once

#include "kernels/wrong_access.h"

enum { GUESSES_MAX = 64, VERIFIED_MAX = 1 << 16 };

struct guesses {
    uint32_t count;
    bool any_verified;
    uint32_t sites[GUESSES_MAX];
    struct wrong_access kept[GUESSES_MAX];  // the first one of its kind of each instruction that reads
    unsigned char verified[VERIFIED_MAX / 8];
};

void guesses_begin(struct guesses *guesses);
void guesses_keep(struct guesses *guesses, const struct wrong_access *wrong, uint32_t read_site);
void guesses_verify(struct guesses *guesses, uint32_t read_site);
void guesses_verify_all(struct guesses *guesses, const struct guesses *others);  // what they have verified
void guesses_see(struct guesses *guesses);  // tells those that nothing has verified
