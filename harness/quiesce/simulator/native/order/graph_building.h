// Nodes that a client adds by hand, and what it changes of them. Each is made as a captured call makes it: the function
// of a stream that does the work is called on a stream that leads into the graph.
#pragma once

#include <stdint.h>

#include "machine/status.h"

struct stream;
struct work;

// Which node is meant: a new one of a graph (`made` gets its handle), one that is there, or what an executable graph
// has of one.
struct target {
    void *graph;
    void *const *dependencies;
    uint64_t count;
    void **made;
    const void *node;
    void *executable;
};

// Where the work of the node is to be put.
enum status building_begin(const struct target *target, unsigned device, struct stream **stream);

// Makes that work the node, unless something failed. A node is one piece of work, and what is there stays of its kind.
enum status building_end(const struct target *target, enum status status);

enum status building_add_child(struct stream *stream, uint64_t graph);
