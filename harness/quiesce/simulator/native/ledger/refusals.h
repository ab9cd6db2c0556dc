// Who asked for a device and got none: a log of text, which simulator/refusals.py reads.
//
// A client that is refused may go on without a device and succeed. Its run has tested nothing, which the ledger alone
// can't tell: a child of fork() has no ledger, and a call that fails makes no observation.
#pragma once

#include "machine/status.h"

enum refusal {
    REFUSAL_NOT_SIMULATED,  // a function that exists by name only was called
    REFUSAL_FAILED,         // a call failed before anything was made
    REFUSAL_ARMED,          // the same, because the run asked for that failure
    REFUSAL_FORKED,         // a child of fork() called, which inherits no device
    REFUSAL_NOT_INSTALLED,  // NVIDIA's compiler was asked for and is not installed; the function is a sentence about it
    REFUSAL_MISSING,        // a function was looked for that the driver or runtime of this release does not have
};

// Notes each of these once for each process; `caller` is an address in whoever called, or NULL. The loader is asked for
// the file that it lies in, and may wait for a thread that waits for the runtime: not below the runtime's lock.
void refusal_note(enum refusal kind, const char *function, enum status answer, const void *caller);

// Notes that this process ends at its first call, for its machine can't start.
void refusal_note_start(const char *function, const char *why);

// Notes a name that was looked for in vain, which may be any text. Clients try many: the first few dozens are noted.
void refusal_missing(const char *name, const void *caller);

void refusals_open(void);  // nothing was noted yet
