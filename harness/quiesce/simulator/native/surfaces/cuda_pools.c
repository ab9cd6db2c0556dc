// The front end that answers as libcuda: memory pools, and the memory of graphs.

#define LIBCUDA
#include "surfaces/calls.h"

#define API(name) cu##name
#define NAME(name) "cu" #name
#define IS_HIP false
#include "surfaces/pool_calls.inc"

EXPORT int cuMemAllocFromPoolAsync(uint64_t *address, size_t size_bytes, void *pool_handle, void *handle) {
    CALL("cuMemAllocFromPoolAsync");
    NEED_STREAM(stream, handle);
    struct pool *pool = pool_find((uint64_t)pool_handle);
    NEED(address && size_bytes && pool, INVALID_VALUE);
    if (stream->capture && pool->place == MEMORY_OF_HOST)
        ANSWER(unsimulated("cuMemAllocFromPoolAsync", PINNED_IN_A_CAPTURE));
    ANSWER(memory_allocate_ordered(pool, size_bytes, stream, address));
}
