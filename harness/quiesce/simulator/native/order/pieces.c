#include "order/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/handle.h"
#include "machine/forget.h"
#include "machine/hidden.h"
#include "machine/upcalls.h"
#include "order/graph_memory.h"
#include "order/graph_object.h"
#include "order/graph_plan.h"
#include "order/user_object.h"
#include "order/work_store.h"

struct point *point_new(struct stream *stream) {
    struct point *point = malloc(sizeof *point);
    if (point) *point = (struct point){.references = 1, .stream = stream};
    return point;
}

struct point *point_keep(struct point *point) {
    point->references++;
    return point;
}

void point_drop(struct point *point) {
    if (point && --point->references == 0) free(point);
}

struct work *work_new(const struct work *work) {
    struct work *made = work_store_take();
    if (!made) return NULL;
    *made = *work;
    made->next = NULL;
    if (work->kind == WORK_ALLOCATE || work->kind == WORK_END) graph_memory_keep(work->memory);
    if (work->kind == WORK_HOLD) user_objects_keep(work->held);
    if (work->kind == WORK_CHILD) work->child->references++;
    if (work->kind == WORK_LAUNCH) {
        upcalls.kernels.keep_call(work->launch.call);
        made->launch.shown = NULL;
    }
    if (work->kind == WORK_COPY && work->copy.staged) {
        size_t bytes = work->copy.width * work->copy.height;
        made->copy.staged = malloc(bytes ? bytes : 1);
        if (!made->copy.staged) {
            work_store_give(made);
            return NULL;
        }
        memcpy(made->copy.staged, work->copy.staged, bytes);
    }
    return made;
}

void work_delete(struct work *work) {
    if (work->kind == WORK_COPY) forget(work->copy.staged, work->copy.width * work->copy.height);
    if (work->kind == WORK_POINT || work->kind == WORK_WAIT) point_drop(work->point);
    if (work->kind == WORK_ALLOCATE || work->kind == WORK_END) graph_memory_drop(work->memory);
    if (work->kind == WORK_HOLD) user_objects_drop(work->held);
    if (work->kind == WORK_CHILD) graph_drop(work->child);
    if (work->kind == WORK_LAUNCH) {
        upcalls.kernels.drop_call(work->launch.call);
        free(work->launch.shown);
    }
    work_store_give(work);
}

void nodes_delete(struct nodes *nodes) {
    while (nodes->head) {
        struct work *next = nodes->head->next;
        work_delete(nodes->head);
        nodes->head = next;
    }
    nodes->tail = &nodes->head;
    nodes->count = 0;
}

void graph_drop(struct graph *graph) {
    if (--graph->references) return;
    if (graph->is_inner && graph->hidden_handle) handle_drop(HIDDEN(graph->hidden_handle));
    nodes_delete(&graph->nodes);
    edges_delete(&graph->edges);
    user_objects_drop(graph->held);
    plan_delete(graph->plan);
    point_drop(graph->launched);
    free(graph);
}

void node_swap(struct work *node, struct work *other) {
    struct work kept = *node;
    *node = *other;
    *other = kept;
    other->next = node->next;
    node->next = kept.next;
    other->number = node->number;
    node->number = kept.number;
    other->is_disabled = node->is_disabled;
    node->is_disabled = kept.is_disabled;
}
