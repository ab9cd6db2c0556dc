// What a device's context is good for: an error of a kernel makes it unusable, and a reset empties it.
//
// CUDA's reference says of each of these errors that it "leaves the process in an inconsistent state and any further
// CUDA work will return the same error. To continue using CUDA, the process must be terminated and relaunched"
// (cudaError_t: 700, 702, 710, 714 to 719). HIP has the same numbers and says nothing about what comes after; where its
// runtime goes on, it ends the process itself. Nothing here makes one happen by itself, for kernels do not run:
// `--fail launch:N=700` does.
#pragma once

#include <stdbool.h>

#include "ledger/ledger.h"
#include "machine/device.h"
#include "machine/status.h"
#include "order/stream.h"

// Whether an error stays.
bool context_is_sticky(enum status status);

// Makes a device unusable from now on.
void context_break(unsigned device, enum status status);

extern bool contexts_broken;  // whether any device is
enum status context_error_of_current(void);
enum status context_note(enum status status);  // of a call that failed, or on a machine with a broken device

// The error of the current device's context, or OK.
static inline enum status context_error(void) { return contexts_broken ? context_error_of_current() : OK; }

// What a call answers in the end: "this function may also return error codes from previous, asynchronous launches".
static inline enum status context_answer(enum status status) {
    return status || contexts_broken ? context_note(status) : OK;
}

// Destroys what a handle stands for, whatever it is.
void context_destroy(uint64_t handle, enum thing thing);

// Destroys everything that a device has: memory, streams, events, pools, modules (cudaDeviceReset).
enum status context_reset(unsigned device);

void contexts_open(void);

// -- the driver's contexts -------------------------------------------------------------------------------------------
//
// A thread has none until it makes one current (cuCtxCreate, cuCtxPushCurrent, cuCtxSetCurrent) or calls the runtime.
// Which of the driver's functions need one follows the reference, which lists CUDA_ERROR_INVALID_CONTEXT for them, as
// far as nothing in the call names a context. A handle does: "real streams resolve their own context", while "default-
// stream tokens" need a current one, and "handle-based destroys … resolve their own context" (cuda.core's
// resource_handles.cpp and NVIDIA/cuda-python#2497, #2750). tests/simulator/test_driver_contexts.py has all of them.

extern bool driver_initialized;  // by cuInit, or a call of the runtime

// Those of a thread, of which the last is current; each stands for its device.
extern _Thread_local struct context_stack {
    uint64_t before;  // the devices that were current before, the last in the lowest bits
    unsigned depth;
} context_stack;

static inline bool driver_has_context(void) { return context_stack.depth; }

enum status driver_push(int device);

// Makes the current device's primary context current to a thread that has none.
static inline void driver_make_context(void) {
    if (!driver_has_context()) driver_push((int)device_current());
}

// The stream of a handle. One that was created carries its context; a default one is the current context's.
enum status driver_stream(uint64_t handle, struct stream **stream);

void driver_open(void);
