// How a front end's function is written: CALL begins it and takes the lock, ANSWER and NEED end it.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "capture.h"
#include "control.h"
#include "device.h"
#include "event.h"
#include "failure.h"
#include "graph.h"
#include "memory.h"
#include "pool.h"
#include "reach.h"
#include "runtime.h"
#include "status.h"
#include "stream.h"
#include "transfer.h"
#include "value.h"

#define CALL(function)                            \
    enum status status = runtime_enter(function); \
    if (status) return runtime_leave(status)
#define ANSWER(answer) return runtime_leave(answer)
#define NEED(condition, otherwise) \
    if (!(condition)) return runtime_leave(otherwise)

struct dim3 {
    unsigned x, y, z;
};

// How a client says where a pool lies: the part of cudaMemPoolProps and hipMemPoolProps that is read.
struct pool_properties {
    int allocation, handle_types, location, ordinal;
};
