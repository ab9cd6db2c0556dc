#include "order/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "machine/forget.h"
#include "machine/upcalls.h"
#include "order/graph_memory.h"
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
    if (work->kind == WORK_LAUNCH) upcalls.kernels.keep_call(work->launch.call);
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
    if (work->kind == WORK_LAUNCH) upcalls.kernels.drop_call(work->launch.call);
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
