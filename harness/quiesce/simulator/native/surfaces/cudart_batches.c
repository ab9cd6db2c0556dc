// The front end that answers as libcudart: copies and prefetches in batches, which CUDA 12.8 and 13 brought, and host
// functions of CUDA 13.2. The stream of a batch "must not be legacy NULL stream" (cuda_runtime_api.h).

#define RUNTIME
#include "memory/poison.h"
#include "surfaces/batches.h"
#include "surfaces/calls.h"

// Whether some attributes are for the operations from these on, up to the next one's.
static bool are_in_order(const size_t *firsts, size_t attributes, size_t count) {
    if (!firsts || !attributes || attributes > count || firsts[0]) return false;
    for (size_t i = 1; i < attributes; i++)
        if (firsts[i] <= firsts[i - 1] || firsts[i] >= count) return false;
    return true;
}

// Operations of a batch may run in any order. Here they run in theirs.
static enum status copy_one(struct stream *stream, void *to, const void *from, size_t bytes,
                            const struct attributes *attributes) {
    enum { IN_STREAM_ORDER = 1, ANY_ORDER = 3, BY_ADDRESS = 4 };
    if (!attributes || attributes->order < IN_STREAM_ORDER || attributes->order > ANY_ORDER) return INVALID_VALUE;
    struct shape shape = {bytes, bytes, bytes, 1};
    enum status status = transfer_check_direction((uint64_t)to, (uint64_t)from, shape, BY_ADDRESS);
    return status ? status : transfer_copy(stream, (uint64_t)to, (uint64_t)from, shape, true);
}

enum status batch_copy(struct stream *stream, const struct copies *copies) {
    bool complete = copies->to && copies->from && copies->sizes && copies->count && copies->attributes;
    if (!complete || !are_in_order(copies->firsts, copies->attributes_count, copies->count)) return INVALID_VALUE;
    enum status status = OK;
    for (size_t i = 0, kind = 0; i < copies->count && !status; i++) {
        if (kind + 1 < copies->attributes_count && copies->firsts[kind + 1] == i) kind++;
        status = copy_one(stream, copies->to[i], copies->from[i], copies->sizes[i], &copies->attributes[kind]);
    }
    return status;
}

static enum status prefetch_batch(void *const *addresses, const size_t *sizes, size_t count, const uint64_t *places,
                                  const size_t *firsts, size_t places_count, unsigned long long flags) {
    bool complete = addresses && sizes && count && places && !flags;
    if (!complete || !are_in_order(firsts, places_count, count)) return INVALID_VALUE;
    enum status status = OK;
    for (size_t i = 0, place = 0; i < count && !status; i++) {
        if (place + 1 < places_count && firsts[place + 1] == i) place++;
        status = managed_prefetch((uint64_t)addresses[i], sizes[i], places[place], true);
    }
    return status;
}

// "Reading from a discarded range … will return an indeterminate value": that of memory that was freed.
static enum status discard_batch(struct stream *stream, void *const *addresses, const size_t *sizes, size_t count) {
    enum { FIRST_DEVICE = 1 };  // a place as good as any other: it is only asked whether the memory is managed
    if (!addresses || !sizes || !count) return INVALID_VALUE;
    enum status status = OK;
    for (size_t i = 0; i < count && !status; i++) {
        status = managed_prefetch((uint64_t)addresses[i], sizes[i], FIRST_DEVICE, true);
        struct fill fill = {(uint64_t)addresses[i], sizes[i], sizes[i], 1, FREED_BYTE, 1};
        if (!status) status = transfer_fill(stream, fill, true);
    }
    return status;
}

// A stream that is not the legacy default one, or NULL.
static struct stream *find(void *handle, bool zero_is_own) {
    struct stream *stream = stream_find((uint64_t)handle, device_current(), zero_is_own);
    return stream && !stream->legacy ? stream : NULL;
}

// Until CUDA 12 a place for the number of the copy that was wrong stands before the stream.
#define BATCHES(suffix, zero_is_own)                                                                                   \
    EXPORT int cudaMemcpyBatchAsync##suffix(void *const *to, const void *const *from, const size_t *sizes,             \
                                            size_t count, const struct attributes *attributes, const size_t *firsts,   \
                                            size_t attributes_count, void *eighth, void *ninth) {                      \
        CALL("cudaMemcpyBatchAsync" #suffix);                                                                          \
        bool tells_failure = settings.version < 13;                                                                    \
        struct stream *stream = find(tells_failure ? ninth : eighth, zero_is_own);                                     \
        NEED(stream, INVALID_VALUE);                                                                                   \
        struct copies copies = {to, from, sizes, count, attributes, firsts, attributes_count};                         \
        status = batch_copy(stream, &copies);                                                                          \
        if (status && tells_failure && eighth) *(size_t *)eighth = SIZE_MAX;                                           \
        ANSWER(status);                                                                                                \
    }                                                                                                                  \
    EXPORT int cudaMemcpyWithAttributesAsync##suffix(void *to, const void *from, size_t bytes,                         \
                                                     const struct attributes *attributes, void *handle) {              \
        CALL("cudaMemcpyWithAttributesAsync" #suffix);                                                                 \
        struct stream *stream = find(handle, zero_is_own);                                                             \
        NEED(stream, INVALID_VALUE);                                                                                   \
        ANSWER(copy_one(stream, to, from, bytes, attributes));                                                         \
    }                                                                                                                  \
    EXPORT int cudaMemPrefetchBatchAsync##suffix(void **addresses, size_t *sizes, size_t count,                        \
                                                 const uint64_t *places, const size_t *firsts, size_t places_count,    \
                                                 unsigned long long flags, void *handle) {                             \
        CALL("cudaMemPrefetchBatchAsync" #suffix);                                                                     \
        NEED(find(handle, zero_is_own), INVALID_VALUE);                                                                \
        ANSWER(prefetch_batch(addresses, sizes, count, places, firsts, places_count, flags));                          \
    }                                                                                                                  \
    EXPORT int cudaMemDiscardBatchAsync##suffix(void **addresses, size_t *sizes, size_t count,                         \
                                                unsigned long long flags, void *handle) {                              \
        CALL("cudaMemDiscardBatchAsync" #suffix);                                                                      \
        struct stream *stream = find(handle, zero_is_own);                                                             \
        NEED(stream && !flags, INVALID_VALUE);                                                                         \
        ANSWER(discard_batch(stream, addresses, sizes, count));                                                        \
    }                                                                                                                  \
    EXPORT int cudaMemDiscardAndPrefetchBatchAsync##suffix(                                                            \
        void **addresses, size_t *sizes, size_t count, const uint64_t *places, const size_t *firsts,                   \
        size_t places_count, unsigned long long flags, void *handle) {                                                 \
        CALL("cudaMemDiscardAndPrefetchBatchAsync" #suffix);                                                           \
        struct stream *stream = find(handle, zero_is_own);                                                             \
        NEED(stream, INVALID_VALUE);                                                                                   \
        status = prefetch_batch(addresses, sizes, count, places, firsts, places_count, flags);                         \
        ANSWER(status ? status : discard_batch(stream, addresses, sizes, count));                                      \
    }                                                                                                                  \
    EXPORT int cudaLaunchHostFunc_v2##suffix(void *handle, void (*function)(void *), void *data, unsigned mode) {      \
        CALL("cudaLaunchHostFunc_v2" #suffix);                                                                         \
        struct stream *stream = stream_find((uint64_t)handle, device_current(), zero_is_own);                          \
        NEED(stream, INVALID_HANDLE);                                                                                  \
        NEED(function && mode <= 1, INVALID_VALUE); /* how the device waits for it */                                  \
        struct host_call call = {.function = function, .data = data};                                                  \
        ANSWER(stream_enqueue(stream, &(struct work){.kind = WORK_HOST, .host = call}));                               \
    }
BATCHES(, false)
BATCHES(_ptsz, true)
