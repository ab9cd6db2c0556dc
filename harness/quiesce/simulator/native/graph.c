#include "graph.h"

#include <stdlib.h>

#include "failure.h"
#include "handle.h"
#include "runtime.h"
#include "stream.h"
#include "transfer.h"

struct graph {
    uint64_t serial;
    struct nodes nodes;
};

static enum status make(enum thing thing, struct nodes *nodes, uint64_t *handle) {
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph) {
        nodes_delete(nodes);
        return OUT_OF_MEMORY;
    }
    graph->nodes = *nodes;
    if (!graph->nodes.head) graph->nodes.tail = &graph->nodes.head;
    *handle = handle_make(thing, graph, 0, &graph->serial, false);
    if (*handle) return OK;
    nodes_delete(&graph->nodes);
    free(graph);
    return OUT_OF_MEMORY;
}

enum status graph_create(struct nodes *nodes, uint64_t *handle) { return make(THING_GRAPH, nodes, handle); }

enum status graph_nodes(uint64_t handle, void **nodes, uint64_t *count) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph || !count) return INVALID_VALUE;
    uint64_t room = *count;
    const struct work *work = graph->nodes.head;
    if (!nodes || graph->nodes.count < room) *count = graph->nodes.count;
    for (uint64_t i = 0; nodes && i < room; i++) {
        nodes[i] = (void *)work;  // only told apart: no function that takes a node is simulated
        if (work) work = work->next;
    }
    return OK;
}

enum status graph_instantiate(uint64_t handle, uint64_t *executable) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph) return INVALID_VALUE;
    enum status failed = failure_meet(CALL_GRAPH);
    if (failed) return failed;
    struct nodes nodes = {.tail = &nodes.head};
    for (const struct work *work = graph->nodes.head; work; work = work->next) {
        struct work *made = work_new(work);
        if (!made) {
            nodes_delete(&nodes);
            return OUT_OF_MEMORY;
        }
        *nodes.tail = made;
        nodes.tail = &made->next;
        nodes.count++;
    }
    return make(THING_GRAPH_EXEC, &nodes, executable);
}

enum status graph_launch(uint64_t executable, struct stream *stream) {
    const struct graph *graph = handle_find(THING_GRAPH_EXEC, executable);
    if (!graph) return INVALID_VALUE;
    enum status status = failure_meet(CALL_LAUNCH);
    if (!status && !graph->nodes.head) status = stream_enqueue(stream, &(struct work){.kind = WORK_LAUNCH});
    for (const struct work *work = graph->nodes.head; work && !status; work = work->next) {
        if (!stream->capture) transfer_observe(stream, work);
        status = stream_enqueue(stream, work);
    }
    return status;
}

static enum status destroy(enum thing thing, uint64_t handle) {
    struct graph *graph = handle_find(thing, handle);
    if (!graph) return INVALID_VALUE;
    nodes_delete(&graph->nodes);
    free(graph);
    handle_drop(handle, settings.recycle == RECYCLE_EAGER);
    return OK;
}

enum status graph_destroy(uint64_t graph) { return destroy(THING_GRAPH, graph); }
enum status graph_destroy_executable(uint64_t executable) { return destroy(THING_GRAPH_EXEC, executable); }
