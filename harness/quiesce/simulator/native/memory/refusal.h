// What is observed of a request that is refused: for memory, the answer and how the device stood then; of a free, why.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/status.h"

// `injected`: it was asked for (failure.h), whatever there was.
void refusal_see(enum thing thing, unsigned device, uint64_t size_bytes, enum status answer, bool injected);

// A free is refused: SEEN_FREED_TWICE, or SEEN_FREED_FOREIGN where the address was never allocated as that thing.
void refuse_free(enum seen seen, enum thing thing, uint64_t address);
void refuse_free_of_heap(uint64_t address, uint64_t line);  // of memory that a kernel allocated; line: see struct live
