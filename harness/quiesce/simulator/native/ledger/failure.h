// Failures on demand: the n-th call of a kind, all from the n-th on, or some by probability with the run's seed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/call_kinds.h"
#include "machine/status.h"

// Arms what text asks for: KIND:N (the n-th), KIND:N+ (from the n-th on), KIND:P% (by probability), each with an
// optional =CODE, separated by commas. Returns what is wrong, in a static text, or NULL.
const char *failure_check(const char *text);  // whether it can be armed
const char *failure_arm(const char *text, uint64_t seed);

// Arms one more: the nth call of a kind from now (1: the next) answers `answer` once.
void failure_arm_one(enum call_kind kind, uint64_t nth, int answer);

// Counts one call of a kind; returns what it has to answer, OK where it may go on.
enum status failure_meet(enum call_kind kind);

bool failure_in_call(void);  // whether the call that is under way was made to fail
