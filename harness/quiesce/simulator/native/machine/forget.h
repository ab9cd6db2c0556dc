// Memory of the runtime's own that names a client's. What is freed keeps its content: at exit, an address left in it
// would look like somebody who still knows the block.
#pragma once

#include <stdlib.h>
#include <string.h>

static inline void forget(void *start, size_t bytes) {
    if (!start) return;
    explicit_bzero(start, bytes);
    free(start);
}
