#include "order/edges.h"

#include <stdlib.h>
#include <string.h>

bool edges_add(struct edges *edges, struct edge edge) {
    if (edges->count == edges->capacity) {
        size_t capacity = edges->capacity ? 2 * edges->capacity : 16;
        struct edge *grown = realloc(edges->all, capacity * sizeof *grown);
        if (!grown) return false;
        edges->all = grown;
        edges->capacity = capacity;
    }
    edges->all[edges->count++] = edge;
    return true;
}

bool edges_copy(const struct edges *from, struct edges *to) {
    *to = (struct edges){0};
    if (!from->count) return true;
    to->all = malloc(from->count * sizeof *to->all);
    if (!to->all) return false;
    memcpy(to->all, from->all, from->count * sizeof *to->all);
    to->count = to->capacity = from->count;
    return true;
}

void edges_delete(struct edges *edges) {
    free(edges->all);
    *edges = (struct edges){0};
}
