// How a front end's function is written: CALL begins it and takes the lock, ANSWER and NEED end it.
//
// A front end says first what it answers as: RUNTIME (libcudart), LIBCUDA (the driver) or neither (HIP). CALL_ALWAYS
// begins a function that works in a context that an error made unusable, CALL_OUTSIDE one that needs no context. In
// the runtime CALL makes the primary context current where none is ("If no CUcontext is current to the calling thread
// when a CUDA Runtime API call which requires an active context is made, then the primary context for a device will be
// selected, made current to the calling thread, and initialized": CUDA Runtime API, "Interactions with the CUDA Driver
// API"). In the driver it needs cuInit: else it "will return CUDA_ERROR_NOT_INITIALIZED" (cuInit). NEED_CONTEXT and
// NEED_STREAM ask for what driver_context.h says.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "code/link.h"
#include "code/module.h"
#include "code/registration.h"
#include "code/source.h"
#include "code/symbol.h"
#include "kernels/device_heap.h"
#include "kernels/launch.h"
#include "kernels/needs.h"
#include "ledger/failed_calls.h"
#include "ledger/failure.h"
#include "ledger/unsimulated.h"
#include "lifetime/reset.h"
#include "lifetime/runtime.h"
#include "machine/device.h"
#include "machine/status.h"
#include "memory/array.h"
#include "memory/managed.h"
#include "memory/capacity.h"
#include "memory/exported.h"
#include "memory/imported.h"
#include "memory/memory.h"
#include "memory/places.h"
#include "memory/pool.h"
#include "memory/refusal.h"
#include "memory/registered.h"
#include "memory/texture.h"
#include "memory/virtual.h"
#include "order/array_copy.h"
#include "order/capture.h"
#include "order/context.h"
#include "order/driver_context.h"
#include "order/event.h"
#include "order/graph.h"
#include "order/graph_building.h"
#include "order/graph_dot.h"
#include "order/graph_launch.h"
#include "order/graph_memory.h"
#include "order/graph_nodes.h"
#include "order/ordered_memory.h"
#include "order/stream.h"
#include "order/stream_handles.h"
#include "order/transfer.h"
#include "order/user_object.h"
#include "order/value.h"
#include "surfaces/control.h"
#include "surfaces/newer_functions.h"

#ifdef LIBCUDA
static inline int leave_driver(enum status answer) {
    quiesce_zero_is_own = false;
    return runtime_leave_to_driver(answer);  // its calls do not become the runtime's last error
}
#define LEAVE leave_driver
#else
#define LEAVE runtime_leave
#endif

#ifdef RUNTIME
#define INITIALIZE driver_initialized = true
#define MAKE_CONTEXT driver_make_context()
#else
#define INITIALIZE (void)0
#define MAKE_CONTEXT (void)0
#endif

#define NEED(condition, otherwise) \
    if (!(condition)) return LEAVE(otherwise)
#define CALL_ALWAYS(function)                     \
    enum status status = runtime_enter(function); \
    NEED(!status, status);                        \
    INITIALIZE
#define CALL_OUTSIDE(function) \
    CALL_ALWAYS(function);     \
    NEED(!context_error(), context_error())
#define ANSWER(answer) return LEAVE(context_answer(answer))

#ifdef LIBCUDA
#define CALL(function)      \
    CALL_OUTSIDE(function); \
    NEED(driver_initialized, NOT_INITIALIZED)
#define NEED_CONTEXT                   \
    status = driver_context_needed(); \
    NEED(!status, status)
#define NEED_STREAM(found, handle)                      \
    struct stream *found;                               \
    status = driver_stream((uint64_t)(handle), &found); \
    NEED(!status, status)
#else
#define CALL(function)      \
    CALL_OUTSIDE(function); \
    MAKE_CONTEXT
#define NEED_CONTEXT (void)0
#define NEED_STREAM(found, handle)               \
    struct stream *found = OWN(find)(handle); \
    NEED(found, INVALID_HANDLE)
#endif

#define PINNED_IN_A_CAPTURE "in a capture take a pool of device memory, or allocate pinned memory before"

// No edge of a graph has data (cudaGraphEdgeData).
#define PLAIN_EDGES_ONLY "let a node wait for the whole of another one: edges with data are not simulated"

static inline bool is_plain(const uint64_t *data, size_t count) {
    for (size_t i = 0; data && i < count; i++)
        if (data[i]) return false;
    return true;
}

#define FIRST_VALUE_IS_UNKNOWN                                                                                    \
    "the variable's first value is an address, or stands in an image that can't be read: write to the variable, " \
    "or, if nvcc compressed the image, install libzstd.so.1, which unpacks it"

// How a client says where a pool lies: the part of cudaMemPoolProps and hipMemPoolProps that is read.
struct pool_properties {
    int allocation, handle_types, location, ordinal;
    void *security;    // of Windows
    size_t max_bytes;  // since CUDA 12.2; reserved before, and zero
};
