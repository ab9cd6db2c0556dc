// The driver's contexts: which are current to a thread, each standing for its device.
//
// A thread has none until it makes one current (cuCtxCreate, cuCtxPushCurrent, cuCtxSetCurrent) or calls the runtime.
// Which of the driver's functions need one follows the reference, which lists CUDA_ERROR_INVALID_CONTEXT for them, as
// far as nothing in the call names a context. A handle does: "real streams resolve their own context", while "default-
// stream tokens" need a current one, and "handle-based destroys … resolve their own context" (cuda.core's
// resource_handles.cpp and NVIDIA/cuda-python#2497, #2750). tests/simulator/test_driver_contexts.py has all of them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/device.h"
#include "machine/settings.h"
#include "machine/status.h"

struct stream;

extern unsigned driver_usages[DEVICES_MAX];  // of contexts that were created: cuCtxAttach and cuCtxDetach count them
extern bool driver_initialized;  // by cuInit, or a call of the runtime

// Those of a thread, of which the last is current; each stands for its device.
extern _Thread_local struct context_stack {
    uint64_t before;  // the devices that were current before, the last in the lowest bits
    unsigned depth;
} context_stack;

static inline bool driver_has_context(void) { return context_stack.depth; }

enum status driver_push(int device);
enum status driver_pop(void);  // of a thread that has one

// Makes the current device's primary context current to a thread that has none.
static inline void driver_make_context(void) {
    if (!driver_has_context()) driver_push((int)device_current());
}

// Whether 0 names the thread's own default stream in the call that is under way. Its name can be seen from outside,
// for code in assembler sets it (surfaces/cuda_per_thread.c).
extern _Thread_local bool quiesce_zero_is_own;

// The stream of a handle. One that was created carries its context; a default one is the current context's.
enum status driver_stream(uint64_t handle, struct stream **stream);

void driver_open(void);
