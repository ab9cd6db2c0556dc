// Graphs: captured work that runs as often as it is launched.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/edges.h"
#include "order/work.h"

struct user_objects;

// Also an executable one: both own their nodes.
struct graph {
    unsigned references;  // its handle or its capture, and each launch that is under way
    uint64_t hidden_handle, serial;  // see hidden.h; 0: nobody was told of it
    struct nodes nodes;
    struct edges edges;
    struct user_objects *held;
    bool frees_on_launch, captures;  // captures: it is not the client's yet
};

void graph_drop(struct graph *graph);

// The graph of a capture, into which it puts what it captures. A client may be told of it meanwhile, but for destroying
// it (cudaStreamGetCaptureInfo: "All operations other than destroy and node removal are permitted on the graph while
// the capture sequence is in progress. This API does not transfer ownership"). At the end it is the client's, or gone.
struct graph *graph_begin(void);
void graph_append(struct graph *graph, struct work *work);
const struct work *graph_first(const struct graph *graph);
enum status graph_hold(struct graph *graph, const struct user_objects *held);
enum status graph_show(struct graph *graph, uint64_t *handle);
enum status graph_end(struct graph *graph, uint64_t *handle);
void graph_abandon(struct graph *graph);

// References to a user object that the graph owns (user_object.h).
enum status graph_retain(uint64_t graph, uint64_t object, uint64_t count, bool moves);
enum status graph_release(uint64_t graph, uint64_t object, uint64_t count);

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

// Writes the nodes that come directly after a node (`after`), or directly before it, as graph_nodes() does.
enum status graph_neighbours(const void *node, bool after, void **nodes, uint64_t *count);
enum status graph_destroy(uint64_t graph);
enum status graph_destroy_executable(uint64_t executable);
