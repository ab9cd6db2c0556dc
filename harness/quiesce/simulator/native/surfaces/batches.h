// Copies in a batch, as the runtime and the driver take them.

#ifndef QUIESCE_SURFACES_BATCHES_H
#define QUIESCE_SURFACES_BATCHES_H

#include <stddef.h>

#include "machine/status.h"
#include "order/stream.h"

struct location {  // cudaMemLocation, CUmemLocation
    int kind, ordinal;
};

struct attributes {  // cudaMemcpyAttributes, CUmemcpyAttributes
    int order;       // of the access to the source; 0 is none
    struct location from, to;
    unsigned flags;
};

struct copies {
    void *const *to;
    const void *const *from;
    const size_t *sizes;
    size_t count;
    const struct attributes *attributes;
    const size_t *firsts;
    size_t attributes_count;
};

// Operations of a batch may run in any order. Here they run in theirs.
enum status batch_copy(struct stream *stream, const struct copies *copies);

#endif
