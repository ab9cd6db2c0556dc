// The driver's contexts: which there are, and which are current to a thread.
//
// Each has a number. A device has one that is its primary context, with the device's number: it exists while somebody
// retains it, the runtime from its first use on. Things of a context carry its number (ledger.h) and go with it.
//
// A thread has none until it makes one current (cuCtxCreate, cuCtxPushCurrent, cuCtxSetCurrent) or calls the runtime.
// Which of the driver's functions need one follows the reference, which lists CUDA_ERROR_INVALID_CONTEXT for them, as
// far as nothing in the call names a context. A handle does: "real streams resolve their own context", while "default-
// stream tokens" need a current one, and "handle-based destroys … resolve their own context" (cuda.core's
// resource_handles.cpp and NVIDIA/cuda-python#2497, #2750). tests/simulator/test_driver_contexts.py has all of them.
// A context that is gone may still be current. What needs it answers CUDA_ERROR_CONTEXT_IS_DESTROYED then, as an H200
// does (tests/simulator/device_answers_calls.cu, primary_context).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/device.h"
#include "machine/settings.h"
#include "machine/status.h"

struct stream;

extern bool driver_initialized;  // by cuInit, or a call of the runtime
extern bool driver_context_died;  // whether there is one that was destroyed and may be current to a thread
extern uint64_t driver_contexts_made;  // things of the ledger that are contexts

// Those of a thread before the current one, the last at the end; a loader has little room for what each thread has.
enum { CONTEXT_DEPTH_MAX = 20 };
extern _Thread_local struct context_stack {
    uint8_t before[CONTEXT_DEPTH_MAX];
    uint32_t depth;
} context_stack;

static inline bool driver_has_context(void) { return context_stack.depth; }

// -- which there are -------------------------------------------------------------------------------------------------

enum { CONTEXTS_MAX = 256 };

// The number of a context that a client names: INVALID_CONTEXT where there is none, also of one that was destroyed.
enum status driver_find(const void *handle, unsigned *number);
void *driver_handle(unsigned number);
unsigned driver_device(unsigned number);
bool driver_is_alive(unsigned number);
bool driver_is_alone(unsigned number);  // no other context of its device is alive

// That of a stream or an event; of a stream that nobody created it is the current one of its device.
unsigned driver_context_of(uint64_t handle, unsigned device);

enum status driver_create(unsigned device, unsigned *number);

// One more, and one less, who uses a context. *is_last: nobody does any more, so that the caller is to destroy it.
void driver_retain(unsigned number);
enum status driver_release(unsigned number, bool *is_last);

// The runtime retains a primary context at its first use, and again once it was destroyed.
extern bool driver_is_runtimes[DEVICES_MAX];
void driver_retain_for_runtime(unsigned device);

// A context's things are gone. Clients have to release a primary one nevertheless: "Resetting the primary context does
// not release it" (cuDevicePrimaryCtxReset).
void driver_end(unsigned number);

// -- which is current ------------------------------------------------------------------------------------------------

enum status driver_push(unsigned number);
void driver_set(unsigned number);  // in place of the current one, of a thread that has one
void driver_pop(void);             // of a thread that has one

// OK, or why the current context can't be used; a use of one that was destroyed is observed.
enum status driver_context_gone(void);
static inline enum status driver_context_needed(void) {
    if (!driver_has_context()) return INVALID_CONTEXT;
    return driver_context_died ? driver_context_gone() : OK;
}

// Makes the current device's primary context current to a thread that has none.
static inline void driver_make_context(void) {
    if (!driver_has_context()) driver_push(device_current());
    unsigned number = device_context();
    if (number < DEVICES_MAX && !driver_is_runtimes[number]) driver_retain_for_runtime(number);
}

// Whether 0 names the thread's own default stream in the call that is under way. Its name can be seen from outside,
// for code in assembler sets it (surfaces/cuda_per_thread.c).
extern _Thread_local bool quiesce_zero_is_own;

// The stream of a handle. One that was created carries its context; a default one is the current context's.
enum status driver_stream(uint64_t handle, struct stream **stream);

void driver_open(void);
