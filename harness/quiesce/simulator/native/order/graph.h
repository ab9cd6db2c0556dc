// Graphs: work that was captured, or added node by node, and runs as often as it is launched.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/status.h"
#include "order/graph_object.h"

struct user_objects;

// The graph of a capture, into which it puts what it captures. A client may be told of it meanwhile, but for destroying
// it (cudaStreamGetCaptureInfo: "All operations other than destroy and node removal are permitted on the graph while
// the capture sequence is in progress. This API does not transfer ownership"). At the end it is the client's, or gone.
struct graph *graph_begin(void);
void graph_append(struct graph *graph, struct work *work);  // gives it its number
bool graph_has(const struct graph *graph, const void *node);
struct work *graph_node(const struct graph *graph, uint32_t number);  // NULL: there is none
enum status graph_hold(struct graph *graph, const struct user_objects *held);
enum status graph_show(struct graph *graph, uint64_t *handle);
enum status graph_end(struct graph *graph, uint64_t *handle);

// References to a user object that the graph owns (user_object.h).
enum status graph_retain(uint64_t graph, uint64_t object, uint64_t count, bool moves);
enum status graph_release(uint64_t graph, uint64_t object, uint64_t count);

void graphs_close(void);  // what comes is counted from the beginning

enum status graph_create(uint64_t *graph);  // an empty one

// Makes a graph with the nodes of another one, for a node of a third.
enum status graph_copy_inner(const struct graph *from, struct graph **made);
bool graph_has_memory(const struct graph *graph);
bool graph_is_alike(const struct graph *graph, const struct graph *other);  // nodes of the same kinds, and their edges
enum status graph_instantiate(uint64_t graph, uint64_t flags, uint64_t *executable);
// Memory nodes forbid it: "The graph cannot be cloned" (cudaGraphAddMemAllocNode).
enum status graph_clone(uint64_t graph, uint64_t *clone);

// Gives an executable graph what another one does, of the same nodes and edges in the same order. *result says what
// differs (cudaGraphExecUpdateResult); where anything does, GRAPH_UPDATE_FAILURE is answered and nothing changes.
enum status graph_update(uint64_t executable, uint64_t graph, int *result);

enum status graph_identifier(uint64_t graph, enum thing thing, unsigned *identifier);
enum status graph_flags(uint64_t executable, unsigned long long *flags);
enum status graph_destroy(uint64_t graph);
enum status graph_destroy_executable(uint64_t executable);
