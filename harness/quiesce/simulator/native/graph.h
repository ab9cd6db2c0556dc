// Graphs: captured work that runs as often as it is launched.
#pragma once

#include <stdint.h>

#include "capture.h"
#include "status.h"

struct graph;  // also an executable one: both own their nodes

// Takes the nodes over, also where it fails.
enum status graph_create(struct nodes *nodes, uint64_t *handle);
// Writes the nodes of a graph into room for `count`, NULL behind the last, and how many there are of those; where
// `nodes` is NULL, only how many there are in all (CUDA's and HIP's documents on GraphGetNodes).
enum status graph_nodes(uint64_t graph, void **nodes, uint64_t *count);
enum status graph_instantiate(uint64_t graph, uint64_t flags, uint64_t *executable);
// Memory nodes forbid it: "The graph cannot be cloned" (cudaGraphAddMemAllocNode).
enum status graph_clone(uint64_t graph, uint64_t *clone);

// Gives an executable graph what another one does, of the same nodes in the same order. *result says what differs
// (cudaGraphExecUpdateResult); where anything does, GRAPH_UPDATE_FAILURE is answered and nothing changes.
enum status graph_update(uint64_t executable, uint64_t graph, int *result);

enum status graph_node_type(const void *node, int *type);  // cudaGraphNodeType, of a node that graph_nodes() wrote
enum status graph_launch(uint64_t executable, struct stream *stream);
enum status graph_destroy(uint64_t graph);
enum status graph_destroy_executable(uint64_t executable);
