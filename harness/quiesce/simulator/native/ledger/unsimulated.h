// A function whose meaning can't be had here although its name is known: it fails, says so, and says what to do.
#pragma once

#include "machine/status.h"

// Says once for each function, on standard error and in the ledger at every call, that it is not simulated, and what
// to do instead. Returns NOT_SUPPORTED.
enum status unsimulated(const char *function, const char *instead);

void unsimulated_open(void);  // nothing was said yet
