#include "order/graph_building.h"

#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/unsimulated.h"
#include "machine/hidden.h"
#include "order/capture.h"
#include "order/graph.h"
#include "order/graph_nodes.h"
#include "order/graph_plan.h"
#include "order/pieces.h"
#include "order/stream.h"

static struct graph *scratch;  // where the work of the node is put first

static enum status find_graph(const struct target *target, struct graph **graph) {
    struct work *node;
    if (target->made) {
        *graph = handle_find(THING_GRAPH, (uint64_t)target->graph);
        return *graph && (target->dependencies || !target->count) ? OK : INVALID_VALUE;
    }
    return node_find(target->node, &node, graph) ? OK : INVALID_VALUE;
}

enum status building_begin(const struct target *target, unsigned device, struct stream **stream) {
    struct graph *graph;
    enum status status = find_graph(target, &graph);
    if (status) return status;
    scratch = graph_begin();
    if (!scratch) return OUT_OF_MEMORY;
    scratch->identifier = graph->identifier;  // whose memory it is that nodes allocate and free
    *stream = capture_into(scratch, device);
    return OK;
}

// -- what becomes of it ----------------------------------------------------------------------------------------------

static struct work *take_work(void) {
    struct work *work = scratch->nodes.head;
    scratch->nodes.head = NULL;
    scratch->nodes.count = 0;
    return work;
}

static enum status add(const struct target *target) {
    struct graph *graph = handle_find(THING_GRAPH, (uint64_t)target->graph);
    size_t before = graph->edges.count;
    enum status status = OK;
    for (uint64_t i = 0; i < target->count && !status; i++) {
        struct graph *other;
        struct work *node;
        bool is_found = node_find(target->dependencies[i], &node, &other) && other == graph;
        struct edge edge = {is_found ? node->number : 0, graph->numbers + 1};
        if (!is_found || edges_have(&graph->edges, edge))
            status = INVALID_VALUE;
        else if (!edges_add(&graph->edges, edge))
            status = OUT_OF_MEMORY;
    }
    if (status) {
        graph->edges.count = before;
        return status;
    }
    *target->made = scratch->nodes.head;
    graph_append(graph, take_work());
    return OK;
}

static enum status change(const struct target *target) {
    struct work *node, *made = scratch->nodes.head;
    struct graph *graph;
    enum status status = OK;
    if (target->executable)
        status = node_in_executable((uint64_t)target->executable, target->node, &node);
    else if (!node_find(target->node, &node, &graph))
        status = INVALID_VALUE;
    if (status) return status;
    if (node->kind != made->kind) return INVALID_VALUE;
    if (made->kind == WORK_CHILD && target->executable) {
        if (!graph_is_alike(node->child, made->child)) return INVALID_VALUE;
        status = plan_make(made->child);
    }
    if (!status) node_swap(node, made);
    return status;
}

enum status building_end(const struct target *target, enum status status) {
    if (!status && scratch->nodes.count > 1)
        status = unsimulated(ledger_entered(), "copy one plane by each node");
    else if (!status && !scratch->nodes.count)
        status = INVALID_VALUE;
    else if (!status)
        status = target->made ? add(target) : change(target);
    graph_drop(scratch);
    return status;
}

enum status building_add_child(struct stream *stream, uint64_t handle) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph) return INVALID_VALUE;
    // "The graph can only be used in a child node if the ownership is moved to the parent" (cudaGraphAddMemAllocNode).
    if (graph_has_memory(graph)) return unsimulated(ledger_entered(), "allocate the memory in the graph of the node");
    struct work work = {.kind = WORK_CHILD};
    enum status status = graph_copy_inner(graph, &work.child);
    if (status) return status;
    status = stream_enqueue(stream, &work);
    graph_drop(work.child);
    return status;
}
