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

static size_t place_of(const struct edges *edges, struct edge edge) {
    size_t i = 0;
    while (i < edges->count && memcmp(&edges->all[i], &edge, sizeof edge) != 0) i++;
    return i;
}

bool edges_have(const struct edges *edges, struct edge edge) { return place_of(edges, edge) < edges->count; }

bool edges_remove(struct edges *edges, struct edge edge) {
    size_t place = place_of(edges, edge);
    if (place == edges->count) return false;
    memmove(&edges->all[place], &edges->all[place + 1], (--edges->count - place) * sizeof edge);
    return true;
}

void edges_leave(struct edges *edges, uint32_t node) {
    size_t kept = 0;
    for (size_t i = 0; i < edges->count; i++)
        if (edges->all[i].from != node && edges->all[i].to != node) edges->all[kept++] = edges->all[i];
    edges->count = kept;
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
