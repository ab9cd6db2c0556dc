// The front end that answers as libcuda: memory pools, and the memory of graphs.

#define LEAVE runtime_leave_to_driver
#include "calls.h"

#define API(name) cu##name
#define NAME(name) "cu" #name
#define IS_HIP false
#include "pool_calls.inc"

EXPORT int cuMemAllocFromPoolAsync(uint64_t *address, size_t size_bytes, void *pool_handle, void *handle) {
    CALL("cuMemAllocFromPoolAsync");
    struct stream *stream = stream_find((uint64_t)handle, device_current(), false);
    struct pool *pool = pool_find((uint64_t)pool_handle);
    NEED(stream, INVALID_HANDLE);
    NEED(address && size_bytes && pool, INVALID_VALUE);
    ANSWER(memory_allocate_ordered(pool, size_bytes, stream, address));
}
