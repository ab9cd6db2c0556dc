#include "order/graph_nodes.h"

#include "ledger/handle.h"
#include "order/graph.h"
#include "order/pieces.h"

bool node_find(const void *handle, struct work **node, struct graph **found) {
    enum thing thing;
    for (uint64_t each = 0; (each = handle_next(each, &thing));) {
        if (thing != THING_GRAPH) continue;
        struct graph *graph = handle_find(THING_GRAPH, each);
        if (!graph_has(graph, handle)) continue;
        *found = graph;
        *node = (struct work *)handle;
        return true;
    }
    return false;
}

static enum status find_in(const struct graph *made, const void *handle, struct work **node) {
    struct graph *graph;
    struct work *original;
    if (!made || !node_find(handle, &original, &graph) || made->original != graph->identifier) return INVALID_VALUE;
    *node = graph_node(made, original->number);
    return *node ? OK : INVALID_VALUE;
}

enum status node_in_executable(uint64_t executable, const void *handle, struct work **node) {
    return find_in(handle_find(THING_GRAPH_EXEC, executable), handle, node);
}

enum status node_in_clone(uint64_t clone, const void *handle, void **node) {
    struct work *found;
    enum status status = find_in(handle_find(THING_GRAPH, clone), handle, &found);
    if (!status) *node = found;
    return status;
}

// -- lists -----------------------------------------------------------------------------------------------------------

// What a client has room for, and what there is.
struct list {
    void **items;
    uint64_t room, found;
};

static void put(struct list *list, void *item) {
    if (list->found < list->room) list->items[list->found] = item;
    list->found++;
}

static void finish(const struct list *list, uint64_t *count) {
    for (uint64_t i = list->found; i < list->room; i++) list->items[i] = NULL;
    if (!list->items || list->found < list->room) *count = list->found;
}

static struct list list_of(void **items, const uint64_t *count) {
    return (struct list){items, items ? *count : 0, 0};
}

static bool is_root(const struct graph *graph, const struct work *node) {
    for (size_t i = 0; i < graph->edges.count; i++)
        if (graph->edges.all[i].to == node->number) return false;
    return true;
}

enum status graph_nodes(uint64_t handle, bool roots_only, void **nodes, uint64_t *count) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph || !count) return INVALID_VALUE;
    struct list list = list_of(nodes, count);
    for (struct work *work = graph->nodes.head; work; work = work->next)
        if (!roots_only || is_root(graph, work)) put(&list, work);
    finish(&list, count);
    return OK;
}

enum status graph_edges(uint64_t handle, void **from, void **to, uint64_t *count) {
    const struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph || !count || !from != !to) return INVALID_VALUE;
    struct list sources = list_of(from, count), targets = list_of(to, count);
    for (size_t i = 0; i < graph->edges.count; i++) {
        put(&sources, graph_node(graph, graph->edges.all[i].from));
        put(&targets, graph_node(graph, graph->edges.all[i].to));
    }
    finish(&sources, count);
    finish(&targets, count);
    return OK;
}

enum status graph_neighbours(const void *handle, bool after, void **nodes, uint64_t *count) {
    struct graph *graph;
    struct work *node;
    if (!count || !node_find(handle, &node, &graph)) return INVALID_VALUE;
    struct list list = list_of(nodes, count);
    for (size_t i = 0; i < graph->edges.count; i++) {
        struct edge edge = graph->edges.all[i];
        if ((after ? edge.from : edge.to) == node->number) put(&list, graph_node(graph, after ? edge.to : edge.from));
    }
    finish(&list, count);
    return OK;
}

enum status graph_node_type(const void *handle, int *type) {
    enum { KERNEL, COPY, FILL, HOST, CHILD, EMPTY, AWAIT, RECORD, ALLOCATE = 10, FREE };
    static const int TYPES[] = {
        [WORK_COPY] = COPY,   [WORK_FILL] = FILL,   [WORK_LAUNCH] = KERNEL,     [WORK_HOST] = HOST,
        [WORK_CHILD] = CHILD, [WORK_EMPTY] = EMPTY, [WORK_AWAIT] = AWAIT,       [WORK_RECORD] = RECORD,
        [WORK_VALUE] = EMPTY, [WORK_END] = FREE,    [WORK_ALLOCATE] = ALLOCATE,
    };
    struct graph *graph;
    struct work *node;
    if (!node_find(handle, &node, &graph)) return INVALID_VALUE;
    *type = TYPES[node->kind];
    return OK;
}

// -- changes ---------------------------------------------------------------------------------------------------------

static bool find_edge(const struct graph *graph, const void *from, const void *to, struct edge *edge) {
    if (!graph_has(graph, from) || !graph_has(graph, to) || from == to) return false;
    *edge = (struct edge){((const struct work *)from)->number, ((const struct work *)to)->number};
    return true;
}

enum status graph_connect(uint64_t handle, void *const *from, void *const *to, uint64_t count) {
    struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph || (count && (!from || !to))) return INVALID_VALUE;
    size_t before = graph->edges.count;
    enum status status = OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        struct edge edge;
        if (!find_edge(graph, from[i], to[i], &edge) || edges_have(&graph->edges, edge))
            status = INVALID_VALUE;
        else if (!edges_add(&graph->edges, edge))
            status = OUT_OF_MEMORY;
    }
    if (status) graph->edges.count = before;
    return status;
}

// "Nodes and edges of the graph cannot be deleted" where it has memory (cudaGraphAddMemAllocNode).
static enum status may_lose(const struct graph *graph) { return graph_has_memory(graph) ? NOT_SUPPORTED : OK; }

enum status graph_disconnect(uint64_t handle, void *const *from, void *const *to, uint64_t count) {
    struct graph *graph = handle_find(THING_GRAPH, handle);
    if (!graph || (count && (!from || !to))) return INVALID_VALUE;
    enum status status = count ? may_lose(graph) : OK;
    struct edge edge;
    for (uint64_t i = 0; i < count && !status; i++)
        if (!find_edge(graph, from[i], to[i], &edge) || !edges_have(&graph->edges, edge)) status = INVALID_VALUE;
    for (uint64_t i = 0; i < count && !status; i++) {
        find_edge(graph, from[i], to[i], &edge);
        edges_remove(&graph->edges, edge);
    }
    return status;
}

enum status graph_destroy_node(const void *handle) {
    struct graph *graph;
    struct work *node;
    if (!node_find(handle, &node, &graph)) return INVALID_VALUE;
    enum status status = graph->is_inner ? ILLEGAL_STATE : may_lose(graph);
    if (status) return status;
    struct work **place = &graph->nodes.head;
    while (*place != node) place = &(*place)->next;
    *place = node->next;
    if (graph->nodes.tail == &node->next) graph->nodes.tail = place;
    graph->nodes.count--;
    edges_leave(&graph->edges, node->number);
    work_delete(node);
    return OK;
}

// -- of an executable graph ------------------------------------------------------------------------------------------

static enum status find_switched(uint64_t executable, const void *handle, struct work **node) {
    enum status status = node_in_executable(executable, handle, node);
    if (status) return status;
    enum work_kind kind = (*node)->kind;
    return kind == WORK_LAUNCH || kind == WORK_COPY || kind == WORK_FILL ? OK : INVALID_VALUE;
}

enum status node_enable(uint64_t executable, const void *handle, bool enabled) {
    struct work *node;
    enum status status = find_switched(executable, handle, &node);
    if (!status) node->is_disabled = !enabled;
    return status;
}

enum status node_enabled(uint64_t executable, const void *handle, bool *enabled) {
    struct work *node;
    enum status status = find_switched(executable, handle, &node);
    if (!status) *enabled = !node->is_disabled;
    return status;
}
