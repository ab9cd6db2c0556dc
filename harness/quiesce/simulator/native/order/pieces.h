// Pieces of work are made and deleted, with what they refer to.
#pragma once

#include "order/work.h"

struct graph;

// Returns a copy (the bytes that were staged included), or NULL.
struct work *work_new(const struct work *work);
void work_delete(struct work *work);
void nodes_delete(struct nodes *nodes);
void node_swap(struct work *node, struct work *other);  // what they do; each keeps its place, its number and its state

// Ends a reference to a graph, and with the last one the graph, which may be what a node does.
void graph_drop(struct graph *graph);

struct point *point_new(struct stream *stream);
struct point *point_keep(struct point *point);
void point_drop(struct point *point);
