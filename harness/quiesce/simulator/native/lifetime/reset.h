// What empties a context: all that a client made there is destroyed.
#pragma once

#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/status.h"

// Destroys what a handle stands for, whatever it is.
void context_destroy(uint64_t handle, enum thing thing);

// Destroys everything that a context has: memory, streams, events, pools, modules (cudaDeviceReset).
enum status context_reset(unsigned number);
