// The front end that answers as libcudart: what CUDA's runtime does not share with HIP.

#include <stddef.h>
#include <string.h>

#define RUNTIME
#include "surfaces/calls.h"

#define API(name) cuda##name
#define NAME(name) "cuda" #name
#define COMPILERS(name) __cuda##name
#define IS_HIP false
#include "surfaces/shared_calls.inc"
#include "surfaces/device_calls.inc"
#include "surfaces/graph_calls.inc"
#include "surfaces/user_object_calls.inc"
#include "surfaces/pool_calls.inc"
#include "surfaces/array_calls.inc"
#include "surfaces/kernel_calls.inc"
#include "surfaces/graph_copy_calls.inc"
#include "surfaces/graph_node_calls.inc"
#include "surfaces/graph_runtime_copies.inc"
#define DEVICE_POINTER void *
#include "surfaces/ipc_calls.inc"

#define ON(name) cuda##name
#define BY(name) cuda##name
#define NAME_ON(name) "cuda" #name
#define NAME_BY(name) "cuda" #name
#define OWN(name) common_##name
#define ZERO_IS_OWN false
#include "surfaces/stream_calls.inc"
#include "surfaces/capture_calls.inc"
#include "surfaces/array_stream_calls.inc"
#include "surfaces/array_byte_calls.inc"
#include "surfaces/symbol_calls.inc"
#undef ON
#undef BY
#undef NAME_ON
#undef NAME_BY
#undef OWN
#undef ZERO_IS_OWN

// Clients that were built with --default-stream per-thread call these.
#define ON(name) cuda##name##_ptsz
#define BY(name) cuda##name##_ptds
#define NAME_ON(name) "cuda" #name "_ptsz"
#define NAME_BY(name) "cuda" #name "_ptds"
#define OWN(name) own_##name
#define ZERO_IS_OWN true
#include "surfaces/stream_calls.inc"
#include "surfaces/capture_calls.inc"
#include "surfaces/array_stream_calls.inc"
#include "surfaces/array_byte_calls.inc"
#include "surfaces/symbol_calls.inc"

EXPORT int cudaRuntimeGetVersion(int *version) {
    CALL_ALWAYS("cudaRuntimeGetVersion");
    NEED(version, INVALID_VALUE);
    *version = device_release();
    ANSWER(OK);
}

EXPORT int cudaDriverGetVersion(int *version) {
    CALL_ALWAYS("cudaDriverGetVersion");
    NEED(version, INVALID_VALUE);
    *version = device_release();
    ANSWER(OK);
}

// Headers of CUDA 12 give the function of the longer structure the old one's name; CUDA 13 has that name only.
static enum layouts layout(enum layouts older) { return settings.version >= 13 ? LAYOUT_CUDA_13 : older; }

EXPORT int cudaGetDeviceProperties(void *target, int ordinal) {
    return properties(target, ordinal, "cudaGetDeviceProperties", layout(LAYOUT_CUDA_11));
}
EXPORT int cudaGetDeviceProperties_v2(void *target, int ordinal) {
    return properties(target, ordinal, "cudaGetDeviceProperties_v2", layout(LAYOUT_CUDA_12));
}

EXPORT int cudaInitDevice(int ordinal, unsigned device_flags_wanted, unsigned flags) {
    CALL("cudaInitDevice");
    enum { FLAGS_ARE_VALID = 1 };
    (void)device_flags_wanted;
    NEED(flags <= FLAGS_ARE_VALID, INVALID_VALUE);
    ANSWER(device_exists(ordinal) ? OK : INVALID_DEVICE);
}

EXPORT int cudaCtxResetPersistingL2Cache(void) {
    CALL("cudaCtxResetPersistingL2Cache");
    ANSWER(OK);
}

EXPORT int cudaEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
    return cudaEventElapsedTime(milliseconds, start, end);
}

// -- page-locked memory ----------------------------------------------------------------------------------------------

EXPORT int cudaHostAlloc(void **address, size_t size_bytes, unsigned flags) {
    CALL("cudaHostAlloc");
    ANSWER(allocate(THING_PINNED, address, size_bytes, flags));
}

EXPORT int cudaMallocHost(void **address, size_t size_bytes) {
    CALL("cudaMallocHost");
    ANSWER(allocate(THING_PINNED, address, size_bytes, 0));
}

EXPORT int cudaFreeHost(void *address) {
    CALL("cudaFreeHost");
    ANSWER(memory_free(THING_PINNED, THING_PINNED, (uint64_t)address));
}

// -- what lies at an address -----------------------------------------------------------------------------------------

struct pointer_attributes {  // cudaPointerAttributes; CUDA 13 has eight longs behind it
    int type, device;
    void *device_address, *host_address;
};

EXPORT int cudaPointerGetAttributes(void *attributes, const void *address) {
    CALL("cudaPointerGetAttributes");
    NEED(attributes, INVALID_VALUE);
    enum { UNREGISTERED, HOST, DEVICE, MANAGED };
    struct span span = memory_find((uint64_t)address);
    struct pointer_attributes found = {UNREGISTERED, -2, NULL, (void *)address};
    if (!span.dead && span.thing != THING_NONE) {
        bool on_device = span.thing == THING_DEVICE;
        found.type = on_device ? DEVICE : span.thing == THING_MANAGED ? MANAGED : HOST;
        found.device = (int)span.device;
        found.device_address = (void *)address;
        found.host_address = on_device ? NULL : (void *)address;
        if (span.thing == THING_PINNED) transfer_asked_about_pinned((uint64_t)address);
    }
    *(struct pointer_attributes *)attributes = found;
    ANSWER(OK);
}

// CUDA 12 has these beside the older ones, with the arguments that CUDA 13 gives the old names.
EXPORT int cudaMemAdvise_v2(const void *address, size_t size_bytes, int advice, uint64_t place) {
    CALL("cudaMemAdvise_v2");
    ANSWER(managed_advise((uint64_t)address, size_bytes, advice, place, true));
}

// -- captures and graphs ---------------------------------------------------------------------------------------------

// Until CUDA 12 the function of this name has three arguments; since CUDA 13 those of _v3, which CUDA 12 has beside it.
#define CAPTURE_INFO(name, own)                                                                                        \
    EXPORT int cudaStreamGetCaptureInfo_v3##name(void *handle, int *state, unsigned long long *identifier,             \
                                                 void **graph, const void ***dependencies, const void **edges,         \
                                                 size_t *count) {                                                      \
        return own##_capture_info(handle, state, identifier, graph, dependencies, edges, count,                        \
                                  "cudaStreamGetCaptureInfo_v3" #name);                                                \
    }                                                                                                                  \
    EXPORT int cudaStreamGetCaptureInfo##name(void *handle, int *state, unsigned long long *identifier, void **graph,  \
                                              const void ***dependencies, const void **edges, size_t *count) {         \
        bool is_short = settings.version < 13;                                                                         \
        return own##_capture_info(handle, state, identifier, is_short ? NULL : graph, is_short ? NULL : dependencies,  \
                                  is_short ? NULL : edges, is_short ? NULL : count, "cudaStreamGetCaptureInfo" #name); \
    }
CAPTURE_INFO(, common)
CAPTURE_INFO(_ptsz, own)

#define BEGIN_INTO(suffix, own)                                                                                        \
    EXPORT int cudaStreamBeginCaptureToGraph##suffix(void *handle, void *graph, void *const *nodes,                    \
                                                     const uint64_t *data, size_t count, int mode) {                   \
        return own##_begin_into(handle, graph, nodes, data, count, mode, "cudaStreamBeginCaptureToGraph" #suffix);     \
    }
BEGIN_INTO(, common)
BEGIN_INTO(_ptsz, own)

#define DEPEND(suffix, own)                                                                                            \
    EXPORT int cudaStreamUpdateCaptureDependencies_v2##suffix(void *handle, void *const *nodes, const uint64_t *data,  \
                                                              size_t count, unsigned flags) {                          \
        return own##_depend(handle, nodes, data, count, flags, "cudaStreamUpdateCaptureDependencies_v2" #suffix);      \
    }                                                                                                                  \
    EXPORT int cudaStreamUpdateCaptureDependencies##suffix(void *handle, void *const *nodes, void *third,              \
                                                           size_t fourth, unsigned fifth) {                            \
        const char *called = "cudaStreamUpdateCaptureDependencies" #suffix;                                            \
        return HAS_EDGE_DATA ? own##_depend(handle, nodes, third, fourth, fifth, called)                               \
                             : own##_depend(handle, nodes, NULL, (size_t)third, (unsigned)fourth, called);             \
    }
DEPEND(, common)
DEPEND(_ptsz, own)

// Until CUDA 11 three other arguments follow, which stay as they are: nothing is written to the log of a success.
EXPORT int cudaGraphInstantiate(void **executable, void *graph, uint64_t flags) {
    CALL("cudaGraphInstantiate");
    ANSWER(instantiate(executable, graph, settings.version < 12 ? 0 : flags));
}

// -- kernels of the client's own, beside what shared_calls.inc has ---------------------------------------------------

// CUDA 13's compilers launch by a handle that they ask for first: the function's own address here.
EXPORT int __cudaGetKernel(const void **kernel, const void *function) {
    *kernel = function;
    return OK;
}

struct launch_configuration {  // cudaLaunchConfig_t
    struct dim3 grid, block;
    size_t shared_bytes;
    void *stream;
    const void *attributes;
    unsigned attributes_count;
};

// What takes a stream, for both kinds of clients, beside what stream_calls.inc has.
#define STREAM_CALLS(suffix, own)                                                                                      \
    EXPORT int __cudaLaunchKernel##suffix(const void *kernel, struct dim3 grid, struct dim3 block, void **arguments,   \
                                          size_t shared_bytes, void *stream) {                                         \
        return cudaLaunchKernel##suffix(kernel, grid, block, arguments, shared_bytes, stream);                         \
    }                                                                                                                  \
    EXPORT int cudaLaunchKernelExC##suffix(const struct launch_configuration *configuration, const void *function,     \
                                           void **arguments) {                                                         \
        CALL("cudaLaunchKernelExC" #suffix);                                                                           \
        NEED(configuration && function, INVALID_VALUE);                                                                \
        struct stream *stream = own##_find(configuration->stream);                                                     \
        NEED(stream, INVALID_HANDLE);                                                                                  \
        struct callee callee = {0, function, {arguments, NULL}, configuration->shared_bytes, false, false};            \
        launch_attributes(&callee, configuration->attributes, configuration->attributes_count);                        \
        ANSWER(launch_by_runtime(stream, configuration->grid, configuration->block, &callee));                         \
    }                                                                                                                  \
    EXPORT int cudaGraphUpload##suffix(void *executable, void *handle) {                                               \
        CALL("cudaGraphUpload" #suffix);                                                                               \
        (void)executable; /* nothing has to be brought to the device */                                                \
        ANSWER(own##_find(handle) ? OK : INVALID_HANDLE);                                                              \
    }                                                                                                                  \
    EXPORT int cudaMemPrefetchAsync_v2##suffix(const void *address, size_t size_bytes, uint64_t place, unsigned flags, \
                                               void *handle) {                                                         \
        CALL("cudaMemPrefetchAsync_v2" #suffix);                                                                       \
        NEED(!flags, INVALID_VALUE);                                                                                   \
        NEED(own##_find(handle), INVALID_HANDLE);                                                                      \
        ANSWER(managed_prefetch((uint64_t)address, size_bytes, place, true));                                          \
    }
STREAM_CALLS(, common)
STREAM_CALLS(_ptsz, own)

// Which default stream they are given makes no difference: it is only asked whether it exists.
EXPORT int cudaMemPrefetchAsync_ptsz(const void *address, size_t size_bytes, uint64_t place, void *fourth,
                                     void *fifth) {
    return cudaMemPrefetchAsync(address, size_bytes, place, fourth, fifth);
}
EXPORT int cudaGraphInstantiateWithParams_ptsz(void **executable, void *graph, struct instantiation *parameters) {
    return cudaGraphInstantiateWithParams(executable, graph, parameters);
}

EXPORT int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int threads) {
    CALL("cudaOccupancyAvailableDynamicSMemPerBlock");
    NEED(bytes && function && blocks > 0 && threads > 0, INVALID_VALUE);
    struct kernel_needs needs = needs_of(0, function);
    int each = SHARED_MULTIPROCESSOR_BYTES / blocks - SHARED_RESERVED_BYTES - needs.shared_bytes;
    int most = SHARED_OPTIN_BYTES - needs.shared_bytes;
    *bytes = each < 0 ? 0 : (size_t)(each < most ? each : most);
    ANSWER(OK);
}

// The forms of CUDA 3, which were said to be of a thread. CUDA 13 has them no more.
EXPORT int cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }
EXPORT int cudaThreadExit(void) { return cudaDeviceReset(); }
EXPORT int cudaThreadGetLimit(size_t *bytes, int limit) { return cudaDeviceGetLimit(bytes, limit); }
EXPORT int cudaThreadSetLimit(int limit, size_t bytes) { return cudaDeviceSetLimit(limit, bytes); }
EXPORT int cudaThreadGetCacheConfig(int *configuration) { return cudaDeviceGetCacheConfig(configuration); }
EXPORT int cudaThreadSetCacheConfig(int configuration) { return cudaDeviceSetCacheConfig(configuration); }

// Profilers are told where to look; none looks.
EXPORT int cudaProfilerStart(void) {
    CALL("cudaProfilerStart");
    ANSWER(OK);
}
EXPORT int cudaProfilerStop(void) {
    CALL("cudaProfilerStop");
    ANSWER(OK);
}
