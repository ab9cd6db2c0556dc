// Shared memory that nobody has written, as far as it is looked for: each block begins with words that no kernel leaves
// there by chance, so that a write is seen however it is made.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void shared_content_begin(char *memory, size_t bytes);  // a block begins

// Whether all words that bytes belong to are as they were when the block began.
bool shared_content_is_new(const char *memory, uint64_t offset, uint64_t bytes);
