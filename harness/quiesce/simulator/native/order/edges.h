// Which nodes of a graph come directly after which, by their numbers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct edges {
    struct edge {
        uint32_t from, to;
    } *all;
    size_t count, capacity;
};

// False: no memory is left.
bool edges_add(struct edges *edges, struct edge edge);
bool edges_have(const struct edges *edges, struct edge edge);
bool edges_remove(struct edges *edges, struct edge edge);  // whether it was there
void edges_leave(struct edges *edges, uint32_t node);      // removes those of a node
bool edges_copy(const struct edges *from, struct edges *to);
void edges_delete(struct edges *edges);
