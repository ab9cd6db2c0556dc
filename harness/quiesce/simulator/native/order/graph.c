#include "order/graph.h"

#include <stdlib.h>

#include "ledger/failure.h"
#include "ledger/handle.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "order/host_thread.h"
#include "order/pieces.h"
#include "order/user_object.h"

// -- lifetimes -------------------------------------------------------------------------------------------------------

void graph_drop(struct graph *graph) {
    if (--graph->references) return;
    nodes_delete(&graph->nodes);
    edges_delete(&graph->edges);
    user_objects_drop(graph->held);
    free(graph);
}

struct graph *graph_begin(void) {
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph) return NULL;
    graph->references = 1;
    graph->captures = true;
    graph->nodes.tail = &graph->nodes.head;
    return graph;
}

static enum status name(struct graph *graph, enum thing thing, uint64_t *handle) {
    *handle = handle_make(thing, graph, device_current(), &graph->serial, false);
    if (!*handle) return OUT_OF_MEMORY;
    graph->hidden_handle = HIDDEN(*handle);
    return OK;
}

enum status graph_show(struct graph *graph, uint64_t *handle) {
    if (graph->hidden_handle) {
        *handle = HIDDEN(graph->hidden_handle);
        return OK;
    }
    enum status status = name(graph, THING_GRAPH, handle);
    if (!status) handle_disown(*handle);
    return status;
}

enum status graph_end(struct graph *graph, uint64_t *handle) {
    enum status status = OK;
    if (!graph->hidden_handle)
        status = name(graph, THING_GRAPH, handle);
    else if (!handle_own(*handle = HIDDEN(graph->hidden_handle), device_current()))
        status = OUT_OF_MEMORY;
    graph->captures = false;
    if (status) graph_abandon(graph);
    return status;
}

void graph_abandon(struct graph *graph) {
    if (graph->hidden_handle) handle_drop(HIDDEN(graph->hidden_handle));
    graph_drop(graph);
}

void graph_append(struct graph *graph, struct work *work) {
    *graph->nodes.tail = work;
    graph->nodes.tail = &work->next;
    graph->nodes.count++;
}

const struct work *graph_first(const struct graph *graph) { return graph->nodes.head; }

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

// Makes a graph with the nodes of another one, and with references of its own to what that holds.
static enum status copy(const struct graph *from, enum thing thing, bool frees_on_launch, uint64_t *handle) {
    struct graph *graph = graph_begin();
    if (!graph) return OUT_OF_MEMORY;
    graph->captures = false;
    graph->frees_on_launch = frees_on_launch;
    enum status status = copy_nodes(&from->nodes, &graph->nodes);
    if (!status && !edges_copy(&from->edges, &graph->edges)) status = OUT_OF_MEMORY;
    if (!status) status = user_objects_add(&graph->held, from->held);
    if (!status) status = name(graph, thing, handle);
    if (status) graph_drop(graph);
    return status;
}

static enum status destroy(enum thing thing, uint64_t handle) {
    struct graph *graph = handle_find(thing, handle);
    if (!graph) return INVALID_VALUE;
    if (graph->captures) return ILLEGAL_STATE;
    graph_drop(graph);
    handle_drop(handle);
    host_thread_wait();
    return OK;
}

enum status graph_destroy(uint64_t graph) { return destroy(THING_GRAPH, graph); }
enum status graph_destroy_executable(uint64_t executable) { return destroy(THING_GRAPH_EXEC, executable); }

// -- user objects ----------------------------------------------------------------------------------------------------

enum status graph_hold(struct graph *graph, const struct user_objects *held) {
    return user_objects_add(&graph->held, held);
}

enum status graph_retain(uint64_t handle, uint64_t object, uint64_t count, bool moves) {
    struct graph *graph = handle_find(THING_GRAPH, handle);
    return graph ? user_objects_retain(&graph->held, object, count, moves) : INVALID_VALUE;
}

enum status graph_release(uint64_t handle, uint64_t object, uint64_t count) {
    struct graph *graph = handle_find(THING_GRAPH, handle);
    return graph ? user_objects_release(&graph->held, object, count) : INVALID_VALUE;
}

// -- nodes -----------------------------------------------------------------------------------------------------------

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

static bool has_memory(const struct nodes *nodes) {
    for (const struct work *work = nodes->head; work; work = work->next)
        if (work->kind == WORK_ALLOCATE || work->kind == WORK_END) return true;
    return false;
}

// What can't be done with a graph that has memory: driver 580 answers so.
static enum status refusal_of_memory(void) {
    return settings.flavour == FLAVOUR_CUDA ? NOT_SUPPORTED : INVALID_VALUE;
}

enum status graph_clone(uint64_t handle, uint64_t *clone) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph) return INVALID_VALUE;
    return has_memory(&graph->nodes) ? refusal_of_memory() : copy(graph, THING_GRAPH, false, clone);
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
    struct user_objects *held = NULL;
    enum status status = copy_nodes(&graph->nodes, &nodes);
    if (!status) status = user_objects_add(&held, graph->held);
    if (status) {
        nodes_delete(&nodes);
        user_objects_drop(held);
        return status;
    }
    nodes_delete(&target->nodes);
    target->nodes = nodes;
    if (!nodes.head) target->nodes.tail = &target->nodes.head;
    user_objects_drop(target->held);  // launches that are under way share them, and hold them still
    target->held = held;
    host_thread_wait();
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

// The client's graph that a node is in; NULL: none.
static const struct graph *graph_with(const void *node) {
    enum thing thing;
    for (uint64_t handle = 0; (handle = handle_next(handle, &thing));) {
        if (thing != THING_GRAPH) continue;
        const struct graph *graph = handle_find(THING_GRAPH, handle);
        for (const struct work *work = graph->nodes.head; work; work = work->next)
            if (work == node) return graph;
    }
    return NULL;
}

enum status graph_node_type(const void *node, int *type) {
    enum { KERNEL, COPY, FILL, HOST, EMPTY = 5, ALLOCATE = 10, FREE = 11 };
    static const int TYPES[] = {
        [WORK_COPY] = COPY, [WORK_FILL] = FILL,         [WORK_LAUNCH] = KERNEL,
        [WORK_HOST] = HOST, [WORK_ALLOCATE] = ALLOCATE, [WORK_END] = FREE,
        [WORK_VALUE] = EMPTY};
    if (!graph_with(node)) return INVALID_VALUE;
    *type = TYPES[((const struct work *)node)->kind];
    return OK;
}

// How many nodes the stream that captured a node had captured with it.
static uint32_t number_of(const struct graph *graph, const struct work *node) {
    uint32_t number = 1;
    for (const struct work *work = graph->nodes.head; work != node; work = work->next)
        number += work->member == node->member;
    return number;
}

static const struct work *node_of(const struct graph *graph, uint32_t member, uint32_t number) {
    const struct work *work = graph->nodes.head;
    while (work->member != member || --number) work = work->next;
    return work;
}

enum status graph_neighbours(const void *handle, bool after, void **nodes, uint64_t *count) {
    const struct work *node = handle;
    const struct graph *graph = graph_with(node);
    if (!graph || !count) return INVALID_VALUE;
    uint32_t number = number_of(graph, node);
    uint64_t found = 0, room = nodes ? *count : 0;
    for (size_t i = 0; i < graph->edges.count; i++) {
        const struct edge *edge = &graph->edges.all[i];
        uint32_t ends[] = {edge->from_member, edge->from_number, edge->to_member, edge->to_number};
        const uint32_t *own = after ? ends : ends + 2, *other = after ? ends + 2 : ends;
        if (own[0] != node->member || own[1] != number) continue;
        if (found < room) nodes[found] = (void *)node_of(graph, other[0], other[1]);
        found++;
    }
    for (uint64_t i = found; i < room; i++) nodes[i] = NULL;
    if (!nodes || found < room) *count = found;
    return OK;
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
        if (work->kind == WORK_ALLOCATE && find_executable(work->memory)) return refusal_of_memory();
    return copy(graph, THING_GRAPH_EXEC, flags & AUTO_FREE_ON_LAUNCH, executable);
}
