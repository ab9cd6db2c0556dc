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
    unsigned references;  // its handle, and each launch that is under way
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
    graph->references = 1;
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
        nodes[i] = (void *)work;
        if (work) work = work->next;
    }
    return OK;
}

static enum status copy_nodes(const struct nodes *from, struct nodes *to) {
    *to = (struct nodes){.tail = &to->head};
    for (const struct work *work = from->head; work; work = work->next) {
        struct work *made = work_new(work);
        if (!made) {
            nodes_delete(to);
            return OUT_OF_MEMORY;
        }
        *to->tail = made;
        to->tail = &made->next;
        to->count++;
    }
    return OK;
}

static bool has_memory(const struct nodes *nodes) {
    for (const struct work *work = nodes->head; work; work = work->next)
        if (work->kind == WORK_ALLOCATE || work->kind == WORK_END) return true;
    return false;
}

enum status graph_clone(uint64_t handle, uint64_t *clone) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph || has_memory(&graph->nodes)) return INVALID_VALUE;
    struct nodes nodes;
    enum status status = copy_nodes(&graph->nodes, &nodes);
    return status ? status : make(THING_GRAPH, &nodes, false, clone);
}

enum status graph_update(uint64_t executable, uint64_t handle, int *result) {
    enum { SUCCESS, ERROR, TOPOLOGY_CHANGED, NODE_TYPE_CHANGED, NOT_SUPPORTED_CHANGE = 6 };
    struct graph *target = handle_find(THING_GRAPH_EXEC, executable);
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    *result = ERROR;
    if (!target || !graph) return INVALID_VALUE;
    const struct work *old = target->nodes.head, *new = graph->nodes.head;
    *result = target->nodes.count == graph->nodes.count ? SUCCESS : TOPOLOGY_CHANGED;
    if (has_memory(&target->nodes) || has_memory(&graph->nodes)) *result = NOT_SUPPORTED_CHANGE;
    for (; old && new && !*result; old = old->next, new = new->next)
        if (old->kind != new->kind) *result = NODE_TYPE_CHANGED;
    if (*result) return GRAPH_UPDATE_FAILURE;
    struct nodes nodes;
    enum status status = copy_nodes(&graph->nodes, &nodes);
    if (status) return status;
    nodes_delete(&target->nodes);
    target->nodes = nodes;
    if (!nodes.head) target->nodes.tail = &target->nodes.head;
    return OK;
}

// The executable graph with a piece of memory, if there is one.
static const struct graph *find_executable(const struct graph_memory *memory) {
    enum thing thing;
    for (uint64_t handle = 0; (handle = handle_next(handle, &thing));) {
        const struct graph *graph = thing == THING_GRAPH_EXEC ? handle_find(thing, handle) : NULL;
        for (const struct work *work = graph ? graph->nodes.head : NULL; work; work = work->next)
            if (work->kind == WORK_ALLOCATE && work->memory == memory) return graph;
    }
    return NULL;
}

enum status graph_node_type(const void *node, int *type) {
    enum { KERNEL, COPY, FILL, HOST, EMPTY = 5, ALLOCATE = 10, FREE = 11 };
    static const int TYPES[] = {
        [WORK_COPY] = COPY, [WORK_FILL] = FILL,         [WORK_LAUNCH] = KERNEL,
        [WORK_HOST] = HOST, [WORK_ALLOCATE] = ALLOCATE, [WORK_END] = FREE,
        [WORK_VALUE] = EMPTY};
    enum thing thing;
    for (uint64_t handle = 0; (handle = handle_next(handle, &thing));) {
        if (thing != THING_GRAPH) continue;
        const struct graph *graph = handle_find(THING_GRAPH, handle);
        for (const struct work *work = graph->nodes.head; work; work = work->next)
            if (work == node) {
                *type = TYPES[work->kind];
                return OK;
            }
    }
    return INVALID_VALUE;
}

enum status graph_instantiate(uint64_t handle, uint64_t flags, uint64_t *executable) {
    enum { AUTO_FREE_ON_LAUNCH = 1 };  // in both flavours
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph) return INVALID_VALUE;
    enum status failed = failure_meet(CALL_GRAPH);
    if (failed) return failed;
    // "Only one instantiation of the graph may exist at any point in time": of one with memory
    // (cudaGraphAddMemAllocNode).
    for (const struct work *work = graph->nodes.head; work; work = work->next)
        if (work->kind == WORK_ALLOCATE && find_executable(work->memory)) return INVALID_VALUE;
    struct nodes nodes;
    enum status status = copy_nodes(&graph->nodes, &nodes);
    return status ? status : make(THING_GRAPH_EXEC, &nodes, flags & AUTO_FREE_ON_LAUNCH, executable);
}

static void drop(struct graph *graph) {
    if (--graph->references) return;
    nodes_delete(&graph->nodes);
    free(graph);
}

enum status graph_launch(uint64_t executable, struct stream *stream) {
    struct graph *graph = handle_find(THING_GRAPH_EXEC, executable);
    if (!graph) return INVALID_VALUE;
    graph->references++;  // host functions may run without the lock: another thread may destroy it
    stream_keep(stream);
    enum status status = failure_meet(CALL_LAUNCH);
    for (struct work *work = graph->nodes.head; work && !status; work = work->next) {
        if (work->kind != WORK_ALLOCATE) continue;
        status = graph_memory_launch(work->memory, graph->frees_on_launch, stream->capture ? NULL : stream);
    }
    for (struct work *work = graph->nodes.head; work; work = work->next)
        if (work->kind == WORK_ALLOCATE) graph_memory_launch_ended(work->memory, !status);
    if (!status && !graph->nodes.head) status = stream_enqueue(stream, &(struct work){.kind = WORK_LAUNCH});
    for (const struct work *work = graph->nodes.head; work && !status; work = work->next) {
        if (!stream->capture) {
            transfer_observe(stream, work);
            status = transfer_check(work, graph_memory_covers);  // what it was captured with may have been freed since
        }
        if (!status) status = stream_enqueue(stream, work);
    }
    stream_drop(stream);
    drop(graph);
    return status;
}

static enum status destroy(enum thing thing, uint64_t handle) {
    struct graph *graph = handle_find(thing, handle);
    if (!graph) return INVALID_VALUE;
    drop(graph);
    handle_drop(handle, settings.recycle == RECYCLE_EAGER);
    return OK;
}

enum status graph_destroy(uint64_t graph) { return destroy(THING_GRAPH, graph); }
enum status graph_destroy_executable(uint64_t executable) { return destroy(THING_GRAPH_EXEC, executable); }
