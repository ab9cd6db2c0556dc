// Calls that failed: a file next to the ledger with an entry for each different call, which simulator/failed_calls.py
// reads. The file is made by the first failure.
//
// A client may look at an error or go on without a word. What it does with the answer of a call can't be seen; what can
// be seen is that it fetches the error which the runtime keeps for the thread (cudaGetLastError), or that it asks for
// the name or the text of the answer. So each entry counts how often nobody did either.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"

enum { FAILED_CALLS_LAYOUT = 1, FAILED_CALL_NAME_BYTES = 64, FAILED_CALLS_MAX = 1024 };

enum {
    FAILED_INJECTED = 1,    // the run asked for that failure
    FAILED_AFTERWARDS = 2,  // the device is unusable, and the error is that which made it so
};

struct failed_call {
    char function[FAILED_CALL_NAME_BYTES];
    uint64_t count, unnoticed;  // unnoticed: so often nobody looked at the error
    uint64_t observation;       // how many observations there were when it failed first
    uint32_t stack;             // 0: none was kept, or there was no room for another entry with a place
    int32_t answer;
    uint32_t flags, reserved;
};

struct failed_calls_header {
    uint64_t magic;
    uint32_t layout, count;
    uint64_t lost;  // failures for which there was no entry left
};

// Notes that a call of this thread failed. `keeps`: the runtime keeps the error for the thread.
void failed_calls_note(const char *function, enum status answer, unsigned flags, bool keeps);

// This thread fetched its last error, and the runtime forgot it.
void failed_calls_fetched(void);

// This thread asked what an error means. Not below the runtime's lock.
void failed_calls_looked_up(int answer);

void failed_calls_close(void);
void failed_calls_forget(void);  // in a child of fork(), where the file is not mapped
