// Reads that follow indices from word to word of one array, as in `while (i != next[i]) i = next[i]`. Threads that
// meanwhile make a chain shorter lead the reader to the same end: no device goes wrong there, and stock programs do it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/wrong_access.h"

void chains_begin(void);

// A thread of the grid reads a word.
void chains_read(const struct kernel_context *context, uint32_t thread, uint64_t address, uint32_t bytes);

// Whether a race of the last read is no mistake, as far as is known; it is kept until the next one.
bool chains_excuse(const struct wrong_access *race);

// A thread writes, in a race, what it has read: whether it was such a race, which is seen now.
bool chains_accuse(uint32_t thread, uint64_t address);

void chains_end(void);  // of the launch: no read follows
