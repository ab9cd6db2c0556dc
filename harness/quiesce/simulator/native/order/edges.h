// Which nodes of a captured graph come directly after which. A node is known by the stream that captured it (its
// member) and by how many that stream had captured with it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMBERS_MAX = 64 };  // streams of one capture

struct edges {
    struct edge {
        uint32_t from_member, from_number, to_member, to_number;
    } *all;
    size_t count, capacity;
};

// False: no memory is left.
bool edges_add(struct edges *edges, struct edge edge);
bool edges_copy(const struct edges *from, struct edges *to);
void edges_delete(struct edges *edges);
