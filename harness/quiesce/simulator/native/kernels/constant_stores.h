// Stores by which threads tell each other one thing, as that a node was visited: each thread looks whether it was said,
// and says it if not, and all say the same. Who reads such a word at the same time reads what was there or what all
// write. No device goes wrong there, and many programs do it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/wrong_access.h"

void constant_stores_begin(void);

// An instruction has stored so many bytes at an address; whether its thread had looked there before.
void constant_stores_note(uint32_t site, uint64_t address, uint32_t bytes, bool was_looked_at);

// Whether a race of a read and such a store is no mistake, as far as is known; it is kept.
bool constant_stores_excuse(uint32_t site, const struct wrong_access *race);

// The store is none of these after all: the race is seen that it excused.
void constant_stores_accuse(uint32_t site);

// The launch ends: races are seen whose store was none of these after all.
void constant_stores_end(void);
