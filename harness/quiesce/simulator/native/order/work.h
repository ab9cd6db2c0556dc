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
    uint64_t function;         // what the client launched: a function of a module, or of its own
    uint32_t grid[3], block[3], shared_bytes;
    void **shown;  // of a node: places of its arguments, which were told to the client; NULL: none were
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
    WORK_EMPTY,  // these are nodes of graphs, and on no stream
    WORK_CHILD,
    WORK_RECORD,
    WORK_AWAIT,
};

struct work {
    struct work *next;
    enum work_kind kind;
    bool is_disabled;  // of a node of an executable graph: it only keeps its place in the order
    uint32_t number;   // of a graph's node: the same in what is made of that graph; 0 elsewhere
    uint32_t stack;    // of the call that added it; and which function that was
    uint16_t function;
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
        struct graph *child;        // WORK_CHILD
        uint64_t event;             // WORK_RECORD, WORK_AWAIT: its handle, which the client may destroy first
    };
};

// What a graph does.
struct nodes {
    struct work *head, **tail;
    unsigned count;
};
