// The nodes of a client's graphs, and the edges between them. A client knows a node by a handle that is this node's in
// this graph; in what is made of the graph the node has the same number.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"

struct graph;
struct work;

// The node that a client means, and its graph; false: there is none.
bool node_find(const void *handle, struct work **node, struct graph **graph);

// The node of an executable graph that was made of a client's node. INVALID_VALUE: it was made of another graph's.
enum status node_in_executable(uint64_t executable, const void *handle, struct work **node);
enum status node_in_clone(uint64_t clone, const void *handle, void **node);

// Writes the nodes of a graph into room for `count`, NULL behind the last, and how many there are of those; where
// `nodes` is NULL, only how many there are in all (CUDA's and HIP's documents on GraphGetNodes). The same for those
// that nothing comes before (`roots_only`), for edges, and for what comes directly after a node or directly before it.
enum status graph_nodes(uint64_t graph, bool roots_only, void **nodes, uint64_t *count);
enum status graph_edges(uint64_t graph, void **from, void **to, uint64_t *count);
enum status graph_neighbours(const void *node, bool after, void **nodes, uint64_t *count);

enum status graph_node_type(const void *node, int *type);  // cudaGraphNodeType

// Edges, all or none. Those that are there are not added, nor others removed: INVALID_VALUE.
enum status graph_connect(uint64_t graph, void *const *from, void *const *to, uint64_t count);
enum status graph_disconnect(uint64_t graph, void *const *from, void *const *to, uint64_t count);

enum status graph_destroy_node(const void *node);

// Whether a node of an executable graph does anything: one that launches, copies or fills.
enum status node_enable(uint64_t executable, const void *node, bool enabled);
enum status node_enabled(uint64_t executable, const void *node, bool *enabled);
