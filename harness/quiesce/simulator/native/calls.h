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
#include "memory.h"
#include "module.h"
#include "pool.h"
#include "reach.h"
#include "runtime.h"
#include "status.h"
#include "stream.h"
#include "symbol.h"
#include "transfer.h"
#include "unsimulated.h"
#include "value.h"

#define CALL_ALWAYS(function)                     \
    enum status status = runtime_enter(function); \
    if (status) return runtime_leave(status)
#define CALL(function)     \
    CALL_ALWAYS(function); \
    if (context_error()) return runtime_leave(context_error())
#define ANSWER(answer) return runtime_leave(context_answer(answer))
#define NEED(condition, otherwise) \
    if (!(condition)) return runtime_leave(otherwise)

// How a client says where a pool lies: the part of cudaMemPoolProps and hipMemPoolProps that is read.
struct pool_properties {
    int allocation, handle_types, location, ordinal;
};
