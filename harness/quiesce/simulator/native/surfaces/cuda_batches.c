// The front end that answers as libcuda: copies in batches, of CUDA 12.8 and, without a place for the number of the
// copy that was wrong, of CUDA 13. "hStream must not be legacy NULL stream" (cuda.h).

#define LIBCUDA
#include "surfaces/batches.h"
#include "surfaces/calls.h"

static int copy_batch(const struct copies *copies, size_t *wrong, void *handle, const char *name) {
    CALL(name);
    NEED_STREAM(stream, handle);
    status = stream->legacy ? INVALID_VALUE : batch_copy(stream, copies);
    if (status && wrong) *wrong = SIZE_MAX;
    ANSWER(status);
}

EXPORT int cuMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *sizes, size_t count,
                              const struct attributes *attributes, const size_t *firsts, size_t attributes_count,
                              size_t *wrong, void *stream) {
    struct copies copies = {to, from, sizes, count, attributes, firsts, attributes_count};
    return copy_batch(&copies, wrong, stream, "cuMemcpyBatchAsync");
}
EXPORT int cuMemcpyBatchAsync_v2(void *const *to, const void *const *from, const size_t *sizes, size_t count,
                                 const struct attributes *attributes, const size_t *firsts, size_t attributes_count,
                                 void *stream) {
    struct copies copies = {to, from, sizes, count, attributes, firsts, attributes_count};
    return copy_batch(&copies, NULL, stream, "cuMemcpyBatchAsync_v2");
}
