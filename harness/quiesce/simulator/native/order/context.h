// What a device's context is good for: an error of a kernel makes it unusable.
//
// CUDA's reference says of each of these errors that it "leaves the process in an inconsistent state and any further
// CUDA work will return the same error. To continue using CUDA, the process must be terminated and relaunched"
// (cudaError_t: 700, 702, 710, 714 to 719). HIP has the same numbers and says nothing about what comes after; where its
// runtime goes on, it ends the process itself. Nothing here makes one happen by itself, for kernels do not run:
// `--fail launch:N=700` does.
#pragma once

#include <stdbool.h>

#include "machine/status.h"

// Whether an error stays.
bool context_is_sticky(enum status status);

// Makes a device unusable from now on.
void context_break(unsigned device, enum status status);

// Resets a device that is unusable. That is no error, but no later call gets the device ("all CUDA-capable devices are
// busy or unavailable"), as on a device with driver 580.
enum status context_give_up(unsigned device);

extern bool contexts_broken;  // whether any device is
enum status context_error_of_current(void);
enum status context_note(enum status status);  // of a call that failed, or on a machine with a broken device

// The error of the current device's context, or OK.
static inline enum status context_error(void) { return contexts_broken ? context_error_of_current() : OK; }

// What a call answers in the end: "this function may also return error codes from previous, asynchronous launches".
static inline enum status context_answer(enum status status) {
    return status || contexts_broken ? context_note(status) : OK;
}

void contexts_open(void);
