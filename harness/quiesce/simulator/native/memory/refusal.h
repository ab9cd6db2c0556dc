// What is observed of a request for memory that is refused: the answer, and how the device stood then.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/status.h"

// `injected`: it was asked for (failure.h), whatever there was.
void refusal_see(enum thing thing, unsigned device, uint64_t size_bytes, enum status answer, bool injected);
