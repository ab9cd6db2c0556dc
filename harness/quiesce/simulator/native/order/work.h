// Work: what a stream's queue and a graph hold.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"
#include "memory/memory.h"
#include "order/host_thread.h"

struct stream;

// A place in a stream's queue that is passed once: what an event stands for.
struct point {
    unsigned references;
    bool complete;
    struct stream *stream;  // valid while it is not complete: a stream with work outlives its handle
    uint64_t step;          // when it was passed, counted in pieces of work
};

struct copy {
    uint64_t to, from, to_pitch, from_pitch, width, height;
    void *staged;  // where the source was read to when the copy was enqueued, or NULL
    uint64_t number;  // of its observation in the ledger
    uint32_t stack;   // of its call; and which function that was
    uint16_t function;
};

struct fill {
    uint64_t to, pitch, width, height;  // width in bytes
    uint64_t value;
    unsigned value_bytes;  // 1, 2, 4 or 8
};

struct kernel_call;

// A launch. The context breaks when the stream comes to one that is to fail on the device.
struct launch_work {
    enum status fault;  // OK: none
    unsigned device;
    struct kernel_call *call;  // NULL: nothing computes
    uint64_t number;           // of its observation in the ledger
};

enum comparison { COMPARE_GREATER_OR_EQUAL, COMPARE_EQUAL, COMPARE_AND, COMPARE_NOR };

// A wait for memory to hold a value, whoever writes it there.
struct value_wait {
    uint64_t address, value, mask;
    unsigned value_bytes;  // 4 or 8
    enum comparison comparison;
};

enum work_kind {
    WORK_COPY,
    WORK_FILL,
    WORK_LAUNCH,
    WORK_HOST,
    WORK_FREE,
    WORK_POINT,
    WORK_WAIT,
    WORK_GATE,
    WORK_ALLOCATE,  // of a graph, as WORK_END, which frees such memory
    WORK_END,
    WORK_VALUE,
    WORK_HOLD,  // of a launch of a graph: holds user objects until the work before it is complete
};

struct work {
    struct work *next;
    enum work_kind kind;
    unsigned member;  // of a capture: which of its streams captured it
    union {
        struct copy copy;
        struct fill fill;
        struct host_call host;
        struct freed freed;
        struct graph_memory *memory;  // WORK_ALLOCATE, WORK_END
        struct launch_work launch;  // WORK_LAUNCH
        struct point *point;        // WORK_POINT, WORK_WAIT
        bool open;                  // WORK_GATE: holds the stream until it is
        struct value_wait value;
        struct user_objects *held;  // WORK_HOLD
    };
};

// What was captured, in an order in which it may run.
struct nodes {
    struct work *head, **tail;
    unsigned count;
};
