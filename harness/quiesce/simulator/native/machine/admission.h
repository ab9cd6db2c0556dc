// Which threads may make calls, and how many calls there were.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"

extern uint64_t admission_calls;  // those that were let in: whether any came in between

// Whether the calls of this thread are refused (NOT_PERMITTED): while it runs what may make none.
void admission_refuse_thread(bool refuse);

// From now on the calls of all threads but this one are refused (UNLOADING).
void admission_unload(void);

// The answer to a call of this thread, or OK. Below the lock.
extern bool admission_limited;  // whether any thread's calls are refused, so that every call asks one question
enum status admission_of_thread(void);
static inline enum status admission_ask(void) { return admission_limited ? admission_of_thread() : OK; }
