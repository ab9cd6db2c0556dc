#include "order/graph.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/failure.h"
#include "ledger/handle.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "order/graph_plan.h"
#include "order/host_thread.h"
#include "order/pieces.h"
#include "order/user_object.h"

// -- lifetimes -------------------------------------------------------------------------------------------------------

static uint64_t identifiers;

void graphs_close(void) { identifiers = 0; }

struct graph *graph_begin(void) {
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph) return NULL;
    graph->references = 1;
    graph->identifier = ++identifiers;
    graph->is_inner = true;
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
    if (status)
        graph_drop(graph);
    else
        graph->is_inner = false;
    return status;
}

enum status graph_create(uint64_t *handle) {
    struct graph *graph = graph_begin();
    return graph ? graph_end(graph, handle) : OUT_OF_MEMORY;
}

// -- nodes -----------------------------------------------------------------------------------------------------------

void graph_append(struct graph *graph, struct work *work) {
    work->number = ++graph->numbers;
    *graph->nodes.tail = work;
    graph->nodes.tail = &work->next;
    graph->nodes.count++;
}

bool graph_has(const struct graph *graph, const void *node) {
    const struct work *work = graph->nodes.head;
    while (work && work != node) work = work->next;
    return work;
}

struct work *graph_node(const struct graph *graph, uint32_t number) {
    struct work *work = graph->nodes.head;
    while (work && work->number != number) work = work->next;
    return work;
}

static enum status copy_nodes(const struct nodes *from, struct nodes *to) {
    enum status status = OK;
    *to = (struct nodes){.tail = &to->head};
    for (const struct work *work = from->head; work && !status; work = work->next) {
        struct work *made = work_new(work);
        if (!made) return OUT_OF_MEMORY;
        *to->tail = made;
        to->tail = &made->next;
        to->count++;
        if (work->kind != WORK_CHILD) continue;
        graph_drop(made->child);
        status = graph_copy_inner(work->child, &made->child);
        if (status) made->kind = WORK_EMPTY;
    }
    return status;
}

enum status graph_copy_inner(const struct graph *from, struct graph **made) {
    struct graph *graph = graph_begin();
    if (!graph) return OUT_OF_MEMORY;
    graph->original = from->identifier;
    graph->numbers = from->numbers;
    nodes_delete(&graph->nodes);
    enum status status = copy_nodes(&from->nodes, &graph->nodes);
    if (!status && !edges_copy(&from->edges, &graph->edges)) status = OUT_OF_MEMORY;
    if (!status) status = user_objects_add(&graph->held, from->held);
    if (status)
        graph_drop(graph);
    else
        *made = graph;
    return status;
}

// Which edge of one graph each of another graph of as many nodes is: false: one is none of them.
static bool has_edges_of(const struct graph *graph, const struct graph *other) {
    uint32_t *numbers = calloc(other->numbers + 1, sizeof *numbers);
    if (!numbers) return false;
    const struct work *own = graph->nodes.head;
    for (const struct work *work = other->nodes.head; work; work = work->next, own = own->next)
        numbers[work->number] = own->number;
    size_t at = 0, count = graph->edges.count;
    bool all = count == other->edges.count;
    for (size_t i = 0; all && i < count; i++) {  // both lists are mostly in one order
        struct edge wanted = {numbers[other->edges.all[i].from], numbers[other->edges.all[i].to]};
        size_t tried = 0;
        for (; tried < count && memcmp(&graph->edges.all[at], &wanted, sizeof wanted) != 0; tried++)
            at = (at + 1) % count;
        all = tried < count;
        at = all ? (at + 1) % count : 0;
    }
    free(numbers);
    return all;
}

static enum status destroy(enum thing thing, uint64_t handle) {
    struct graph *graph = handle_find(thing, handle);
    if (!graph) return INVALID_VALUE;
    if (graph->is_inner) return ILLEGAL_STATE;
    graph_drop(graph);
    handle_drop(handle);
    host_thread_wait();
    return OK;
}

enum status graph_identifier(uint64_t handle, enum thing thing, unsigned *identifier) {
    const struct graph *graph = handle_find(thing, handle);
    if (!graph) return INVALID_VALUE;
    *identifier = (unsigned)graph->identifier;
    return OK;
}

enum status graph_flags(uint64_t executable, unsigned long long *flags) {
    const struct graph *graph = handle_find(THING_GRAPH_EXEC, executable);
    if (!graph) return INVALID_VALUE;
    *flags = graph->flags;
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

// -- memory ----------------------------------------------------------------------------------------------------------

bool graph_has_memory(const struct graph *graph) {
    for (const struct work *work = graph->nodes.head; work; work = work->next)
        if (work->kind == WORK_ALLOCATE || work->kind == WORK_END) return true;
    return false;
}

// What can't be done with a graph that has memory: driver 580 answers so.
static enum status refusal_of_memory(void) {
    return settings.flavour == FLAVOUR_CUDA ? NOT_SUPPORTED : INVALID_VALUE;
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

// -- made of another one ---------------------------------------------------------------------------------------------

static enum status hand_out(struct graph *graph, enum thing thing, uint64_t *handle) {
    enum status status = name(graph, thing, handle);
    graph->is_inner = false;
    if (status) graph_drop(graph);
    return status;
}

enum status graph_clone(uint64_t handle, uint64_t *clone) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    struct graph *made;
    if (!graph) return INVALID_VALUE;
    if (graph_has_memory(graph)) return refusal_of_memory();
    enum status status = graph_copy_inner(graph, &made);
    return status ? status : hand_out(made, THING_GRAPH, clone);
}

enum { UPDATED, ERROR, TOPOLOGY_CHANGED, NODE_TYPE_CHANGED, NOT_SUPPORTED_CHANGE = 6 };

// What differs, beyond what nodes do.
static int difference(const struct graph *target, const struct graph *graph) {
    int found = target->nodes.count == graph->nodes.count ? UPDATED : TOPOLOGY_CHANGED;
    if (graph_has_memory(target) || graph_has_memory(graph)) return NOT_SUPPORTED_CHANGE;
    const struct work *old = target->nodes.head, *new = graph->nodes.head;
    for (; old && new && !found; old = old->next, new = new->next) {
        if (old->kind != new->kind) found = NODE_TYPE_CHANGED;
        if (!found && old->kind == WORK_CHILD) found = difference(old->child, new->child);
    }
    return found || has_edges_of(target, graph) ? found : TOPOLOGY_CHANGED;
}

bool graph_is_alike(const struct graph *graph, const struct graph *other) {
    return difference(graph, other) == UPDATED;
}

// Other nodes for an executable graph, as many: each takes the place of one. What they were is the other list's.
static void replace_nodes(struct graph *target, struct nodes *others) {
    struct work *other = others->head;
    for (struct work *node = target->nodes.head; node; node = node->next, other = other->next) node_swap(node, other);
    nodes_delete(others);
}

enum status graph_update(uint64_t executable, uint64_t handle, int *result) {
    struct graph *target = handle_find(THING_GRAPH_EXEC, executable);
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    *result = ERROR;
    if (!target || !graph) return INVALID_VALUE;
    *result = difference(target, graph);
    if (*result) return GRAPH_UPDATE_FAILURE;
    struct nodes nodes;
    struct user_objects *held = NULL;
    enum status status = copy_nodes(&graph->nodes, &nodes);
    if (!status) status = plan_children(&nodes);
    if (!status) status = user_objects_add(&held, graph->held);
    if (status) {
        nodes_delete(&nodes);
        user_objects_drop(held);
        return status;
    }
    replace_nodes(target, &nodes);
    user_objects_drop(target->held);  // launches that are under way share them, and hold them still
    target->held = held;
    host_thread_wait();
    return OK;
}

enum status graph_instantiate(uint64_t handle, uint64_t flags, uint64_t *executable) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph) return INVALID_VALUE;
    enum status failed = failure_meet(CALL_GRAPH);
    if (failed) return failed;
    // "Only one instantiation of the graph may exist at any point in time": of one with memory
    // (cudaGraphAddMemAllocNode).
    for (const struct work *work = graph->nodes.head; work; work = work->next)
        if (work->kind == WORK_ALLOCATE && find_executable(work->memory)) return refusal_of_memory();
    struct graph *made;
    enum status status = graph_copy_inner(graph, &made);
    if (status) return status;
    made->flags = flags;
    status = plan_make(made);
    if (!status) return hand_out(made, THING_GRAPH_EXEC, executable);
    graph_drop(made);
    return status;
}
