// The front end that answers as libamdhip64: what HIP does not share with CUDA.

#include <string.h>

#include "surfaces/calls.h"

#define API(name) hip##name
#define NAME(name) "hip" #name
#define COMPILERS(name) __hip##name
#define IS_HIP true
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

#define ON(name) hip##name
#define BY(name) hip##name
#define NAME_ON(name) "hip" #name
#define NAME_BY(name) "hip" #name
#define OWN(name) common_##name
#define ZERO_IS_OWN false
#include "surfaces/stream_calls.inc"
#include "surfaces/capture_calls.inc"
#include "surfaces/array_stream_calls.inc"
#include "surfaces/symbol_calls.inc"
#undef ON
#undef BY
#undef NAME_ON
#undef NAME_BY
#undef OWN
#undef ZERO_IS_OWN

// Clients that were built with -fgpu-default-stream=per-thread call these.
#define ON(name) hip##name##_spt
#define BY(name) hip##name##_spt
#define NAME_ON(name) "hip" #name "_spt"
#define NAME_BY(name) "hip" #name "_spt"
#define OWN(name) own_##name
#define ZERO_IS_OWN true
#include "surfaces/stream_calls.inc"
#include "surfaces/capture_calls.inc"
#include "surfaces/array_stream_calls.inc"
#include "surfaces/symbol_calls.inc"

EXPORT int hipInit(unsigned flags) {
    CALL("hipInit");
    ANSWER(flags ? INVALID_VALUE : OK);
}

static int version_number(void) { return (int)settings.version * 10000000; }  // major * 10^7 + minor * 10^5 + patch

EXPORT int hipRuntimeGetVersion(int *version) {
    CALL("hipRuntimeGetVersion");
    NEED(version, INVALID_VALUE);
    *version = version_number();
    ANSWER(OK);
}

EXPORT int hipDriverGetVersion(int *version) {
    CALL("hipDriverGetVersion");
    NEED(version, INVALID_VALUE);
    *version = version_number();
    ANSWER(OK);
}

// Headers since ROCm 6 give the function of the new structure the old one's name.
EXPORT int hipGetDeviceProperties(void *target, int ordinal) {
    return properties(target, ordinal, "hipGetDeviceProperties", LAYOUT_HIP_5);
}
EXPORT int hipGetDevicePropertiesR0600(void *target, int ordinal) {
    return properties(target, ordinal, "hipGetDevicePropertiesR0600", LAYOUT_HIP_6);
}

EXPORT int hipGetStreamDeviceId(void *handle) {
    if (runtime_enter("hipGetStreamDeviceId")) return -runtime_leave(NOT_INITIALIZED);
    const struct stream *stream = common_find(handle);
    int ordinal = stream ? (int)stream->device : -1;
    runtime_leave(OK);
    return ordinal;
}

// -- page-locked memory ----------------------------------------------------------------------------------------------

static int allocate_pinned(void **address, size_t size_bytes, unsigned flags, const char *function) {
    CALL(function);
    ANSWER(allocate(THING_PINNED, address, size_bytes, flags));
}

EXPORT int hipHostMalloc(void **address, size_t size_bytes, unsigned flags) {
    return allocate_pinned(address, size_bytes, flags, "hipHostMalloc");
}
EXPORT int hipHostAlloc(void **address, size_t size_bytes, unsigned flags) {
    return allocate_pinned(address, size_bytes, flags, "hipHostAlloc");
}
EXPORT int hipMallocHost(void **address, size_t size_bytes) {
    return allocate_pinned(address, size_bytes, 0, "hipMallocHost");
}

EXPORT int hipHostFree(void *address) {
    CALL("hipHostFree");
    ANSWER(memory_free(THING_PINNED, THING_PINNED, (uint64_t)address));
}
EXPORT int hipFreeHost(void *address) {
    CALL("hipFreeHost");
    ANSWER(memory_free(THING_PINNED, THING_PINNED, (uint64_t)address));
}

// Memory that only its flags tell from hipMalloc's. Signal memory is 8 bytes: "Size must be 8" (hipMallocSignalMemory).
EXPORT int hipExtMallocWithFlags(void **address, size_t size_bytes, unsigned flags) {
    CALL("hipExtMallocWithFlags");
    enum { DEFAULT, FINE_GRAINED, SIGNAL, UNCACHED, CONTIGUOUS };
    NEED(flags <= CONTIGUOUS && (flags != SIGNAL || size_bytes == 8), INVALID_VALUE);
    ANSWER(allocate(THING_DEVICE, address, size_bytes, flags));
}

// -- what lies at an address -----------------------------------------------------------------------------------------

struct pointer_attributes {  // hipPointerAttribute_t
    int type, device;
    void *device_address, *host_address;
    int is_managed;
    unsigned flags;
};

// The numbers of hipMemoryType changed with ROCm 6, which follows CUDA since then.
static int memory_type(enum thing thing) {
    bool old = settings.version <= 5;
    switch (thing) {
        case THING_DEVICE: return old ? 1 : 2;
        case THING_MANAGED: return old ? 1 : 3;  // ROCm 5 says device memory, and that it is managed
        default: return old ? 0 : 1;
    }
}

EXPORT int hipPointerGetAttributes(void *attributes, const void *address) {
    CALL("hipPointerGetAttributes");
    NEED(attributes && address, INVALID_VALUE);
    struct span span = memory_find((uint64_t)address);
    if (span.dead || span.thing == THING_NONE) {
        NEED(settings.version > 5, INVALID_VALUE);
        *(struct pointer_attributes *)attributes = (struct pointer_attributes){.device = -2};  // unregistered
        ANSWER(OK);
    }
    bool host = span.thing != THING_DEVICE;
    if (span.thing == THING_PINNED) transfer_asked_about_pinned((uint64_t)address);
    *(struct pointer_attributes *)attributes =
        (struct pointer_attributes){memory_type(span.thing), (int)span.device,          (void *)address,
                                    host ? (void *)address : NULL, span.thing == THING_MANAGED, span.flags};
    ANSWER(OK);
}

// -- waiting for a value ---------------------------------------------------------------------------------------------

static int await_value(void *handle, void *address, uint64_t value, uint64_t mask, unsigned value_bytes, unsigned flags,
                       const char *function) {
    CALL(function);
    struct stream *stream = common_find(handle);
    NEED(stream, INVALID_HANDLE);
    ANSWER(value_await(stream, (uint64_t)address, value, mask, value_bytes, flags));
}

EXPORT int hipStreamWaitValue32(void *handle, void *address, uint32_t value, unsigned flags, uint32_t mask) {
    return await_value(handle, address, value, mask, 4, flags, "hipStreamWaitValue32");
}
EXPORT int hipStreamWaitValue64(void *handle, void *address, uint64_t value, unsigned flags, uint64_t mask) {
    return await_value(handle, address, value, mask, 8, flags, "hipStreamWaitValue64");
}

#define DRIVER(name) hip##name
#define DRIVER_NAME(name) "hip" #name
#include "surfaces/virtual_calls.inc"

static int write_value(void *handle, void *address, uint64_t value, unsigned value_bytes, unsigned flags,
                       const char *function) {
    CALL(function);
    struct stream *stream = common_find(handle);
    NEED(stream, INVALID_HANDLE);
    ANSWER(value_write(stream, (uint64_t)address, value, value_bytes, flags));
}

EXPORT int hipStreamWriteValue32(void *handle, void *address, uint32_t value, unsigned flags) {
    return write_value(handle, address, value, 4, flags, "hipStreamWriteValue32");
}
EXPORT int hipStreamWriteValue64(void *handle, void *address, uint64_t value, unsigned flags) {
    return write_value(handle, address, value, 8, flags, "hipStreamWriteValue64");
}

// -- captures and graphs ---------------------------------------------------------------------------------------------

EXPORT int hipStreamGetCaptureInfo(void *handle, int *state, unsigned long long *identifier) {
    return hipStreamGetCaptureInfo_v2(handle, state, identifier, NULL, NULL, NULL);
}

EXPORT int hipStreamBeginCaptureToGraph(void *handle, void *graph, void *const *nodes, const uint64_t *data,
                                        size_t count, int mode) {
    return common_begin_into(handle, graph, nodes, data, count, mode, "hipStreamBeginCaptureToGraph");
}

EXPORT int hipStreamUpdateCaptureDependencies(void *handle, void *const *nodes, size_t count, unsigned flags) {
    return common_depend(handle, nodes, NULL, count, flags, "hipStreamUpdateCaptureDependencies");
}

EXPORT int hipGraphUpload(void *executable, void *handle) {
    CALL("hipGraphUpload");
    (void)executable;  // nothing has to be brought to the device
    ANSWER(common_find(handle) ? OK : INVALID_HANDLE);
}

EXPORT int hipGraphInstantiate(void **executable, void *graph, void **node, char *log, size_t log_bytes) {
    CALL("hipGraphInstantiate");
    if (node) *node = NULL;
    if (log && log_bytes) *log = 0;
    ANSWER(instantiate(executable, graph, 0));
}
