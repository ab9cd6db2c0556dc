// A function whose meaning can't be had here although its name is known: it fails, says so, and says what to do.
#pragma once

#include <stdbool.h>

#include "machine/status.h"

// Says once for each function, on standard error and in the ledger at every call, that it is not simulated, and what
// to do instead. Returns NOT_SUPPORTED.
enum status unsimulated(const char *function, const char *instead);

// Whether nobody asked so for the function before, by its name's address: for what says it in its own words.
bool unsimulated_is_new(const char *function);

bool unsimulated_in_call(void);  // whether the call that is under way is one

bool unsimulated_was_called(void);  // any: what it should have written is missing

void unsimulated_open(void);  // nothing was said yet
