// How a front end's function is written: CALL begins it and takes the lock, ANSWER and NEED end it. CALL_ALWAYS begins
// one that works in a context that an error made unusable.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "array.h"
#include "capture.h"
#include "context.h"
#include "control.h"
#include "device.h"
#include "event.h"
#include "failure.h"
#include "graph.h"
#include "graph_memory.h"
#include "managed.h"
#include "memory.h"
#include "link.h"
#include "module.h"
#include "pool.h"
#include "reach.h"
#include "runtime.h"
#include "status.h"
#include "stream.h"
#include "symbol.h"
#include "transfer.h"
#include "unsimulated.h"
#include "user_object.h"
#include "value.h"
#include "virtual.h"

// The driver's calls do not become the runtime's last error: a front end that answers as the driver says so first.
#ifndef LEAVE
#define LEAVE runtime_leave
#endif

#ifdef RUNTIME
#define MAKE_CONTEXT runtime_was_called = true
#else
#define MAKE_CONTEXT (void)0
#endif

#define CALL_ALWAYS(function)                     \
    enum status status = runtime_enter(function); \
    if (status) return LEAVE(status)
#define CALL(function)                                  \
    CALL_ALWAYS(function);                              \
    if (context_error()) return LEAVE(context_error()); \
    MAKE_CONTEXT
#define ANSWER(answer) return LEAVE(context_answer(answer))
#define NEED(condition, otherwise) \
    if (!(condition)) return LEAVE(otherwise)

// How a client says where a pool lies: the part of cudaMemPoolProps and hipMemPoolProps that is read.
struct pool_properties {
    int allocation, handle_types, location, ordinal;
};
