// What graphs consist of. graph.h and its like have what can be done with them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "order/edges.h"
#include "order/work.h"

struct plan;
struct point;
struct user_objects;

// Also an executable one: both own their nodes.
struct graph {
    unsigned references;  // its handle or its capture, and each launch that is under way
    uint64_t hidden_handle, serial;  // see hidden.h; 0: nobody was told of it
    uint64_t identifier;             // nobody else's: also that of the capture that makes it
    uint64_t original;               // the identifier of the graph that it was made of; 0: of none
    struct nodes nodes;              // in the order in which they were added
    uint32_t numbers;                // the newest node's
    struct edges edges;
    struct user_objects *held;
    uint64_t flags;
    bool is_inner;  // it is not the client's to destroy: its capture's still, or a node's
    // Of an executable one:
    struct plan *plan;
    struct point *launched;  // behind its last launch, NULL: there is none
    uint64_t launched_mark;  // and the serial that the ledger has for it
    unsigned launched_device;
    uint64_t launched_on;  // the serial of the stream
};
