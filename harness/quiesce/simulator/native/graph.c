#include "graph.h"

#include <stdlib.h>

#include "device.h"
#include "failure.h"
#include "graph_memory.h"
#include "handle.h"
#include "runtime.h"
#include "stream.h"
#include "transfer.h"

struct graph {
    uint64_t serial;
    struct nodes nodes;
    bool frees_on_launch;
};

static enum status make(enum thing thing, struct nodes *nodes, bool frees_on_launch, uint64_t *handle) {
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph) {
        nodes_delete(nodes);
        return OUT_OF_MEMORY;
    }
    graph->nodes = *nodes;
    graph->frees_on_launch = frees_on_launch;
    if (!graph->nodes.head) graph->nodes.tail = &graph->nodes.head;
    *handle = handle_make(thing, graph, device_current(), &graph->serial, false);
    if (*handle) return OK;
    nodes_delete(&graph->nodes);
    free(graph);
    return OUT_OF_MEMORY;
}

enum status graph_create(struct nodes *nodes, uint64_t *handle) { return make(THING_GRAPH, nodes, false, handle); }

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

enum status graph_instantiate(uint64_t handle, uint64_t flags, uint64_t *executable) {
    enum { AUTO_FREE_ON_LAUNCH = 1 };  // in both flavours
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
    return make(THING_GRAPH_EXEC, &nodes, flags & AUTO_FREE_ON_LAUNCH, executable);
}

enum status graph_launch(uint64_t executable, struct stream *stream) {
    const struct graph *graph = handle_find(THING_GRAPH_EXEC, executable);
    if (!graph) return INVALID_VALUE;
    enum status status = failure_meet(CALL_LAUNCH);
    for (struct work *work = graph->nodes.head; work && !status; work = work->next) {
        if (work->kind != WORK_ALLOCATE) continue;
        status = graph_memory_launch(work->memory, graph->frees_on_launch, stream->capture ? NULL : stream);
    }
    for (struct work *work = graph->nodes.head; work; work = work->next)
        if (work->kind == WORK_ALLOCATE) graph_memory_launch_ended(work->memory, !status);
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
