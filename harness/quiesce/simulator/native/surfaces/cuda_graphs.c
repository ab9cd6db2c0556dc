// The front end that answers as libcuda: graphs, and what is asked about streams and events beside cuda_streams.c.

#define LIBCUDA
#include <string.h>

#include "surfaces/calls.h"
#include "surfaces/cubes.h"

#define API(name) cu##name
#define NAME(name) "cu" #name
#define IS_HIP false
#include "surfaces/graph_calls.inc"

#define COPY_NODE struct cube
static enum status put_copy(struct stream *stream, const struct cube *copy) { return cube_copy(copy, stream, true); }

static struct side_3d side_at(uint64_t address, uint64_t pitch, uint64_t height) {
    bool is_on_device = memory_find(address).thing == THING_DEVICE;
    return (struct side_3d){.type = is_on_device ? DEVICE : HOST,
                            .host = is_on_device ? 0 : address,
                            .device = is_on_device ? address : 0,
                            .pitch = pitch,
                            .height = height};
}

static struct cube copy_node_of(const struct copy *copy) {
    return (struct cube){side_at(copy->from, copy->from_pitch, copy->height),
                         side_at(copy->to, copy->to_pitch, copy->height), copy->width, copy->height, 1};
}
#include "surfaces/graph_node_calls.inc"

// The form of CUDA 12 has two handles more: a kernel in place of its function, and a context.
struct kernel_node_v2 {
    struct kernel_node node;
    void *kernel, *context;
};

static int build_kernel(struct target target, const struct kernel_node_v2 *wanted, const char *function) {
    CALL(function);
    NEED(wanted, INVALID_VALUE);
    struct kernel_node node = wanted->node;
    if (!node.function) node.function = wanted->kernel;  // both are the same here
    ANSWER(build(target, NODE_KERNEL, &node));
}

EXPORT int cuGraphAddKernelNode_v2(void **node, void *graph, void *const *before, size_t count,
                                   const struct kernel_node_v2 *wanted) {
    return build_kernel((struct target){graph, before, count, node, NULL, NULL}, wanted, "cuGraphAddKernelNode_v2");
}
EXPORT int cuGraphKernelNodeSetParams_v2(const void *node, const struct kernel_node_v2 *wanted) {
    return build_kernel((struct target){.node = node}, wanted, "cuGraphKernelNodeSetParams_v2");
}
EXPORT int cuGraphExecKernelNodeSetParams_v2(void *executable, const void *node, const struct kernel_node_v2 *wanted) {
    return build_kernel((struct target){.node = node, .executable = executable}, wanted,
                        "cuGraphExecKernelNodeSetParams_v2");
}
EXPORT int cuGraphKernelNodeGetParams_v2(const void *node, struct kernel_node_v2 *found) {
    if (found) found->kernel = found->context = NULL;
    return cuGraphKernelNodeGetParams(node, found ? &found->node : NULL);
}

// -- graphs ----------------------------------------------------------------------------------------------------------

EXPORT int cuGraphUpload(void *executable, void *handle) {
    CALL("cuGraphUpload");
    (void)executable;
    NEED_STREAM(stream, handle);
    (void)stream;
    ANSWER(OK);  // nothing has to be brought to the device
}

static int instantiate_with_log(void **executable, void *graph, const char *function) {
    CALL(function);
    ANSWER(instantiate(executable, graph, 0));
}

// What else they take is for the log of an error, where nothing is written.
EXPORT int cuGraphInstantiate(void **executable, void *graph) {
    return instantiate_with_log(executable, graph, "cuGraphInstantiate");
}
EXPORT int cuGraphInstantiate_v2(void **executable, void *graph) {
    return instantiate_with_log(executable, graph, "cuGraphInstantiate_v2");
}

EXPORT int cuGraphExecUpdate_v2(void *executable, void *graph, struct update_result *result) {
    CALL("cuGraphExecUpdate_v2");
    int found;
    NEED(result, INVALID_VALUE);
    status = graph_update((uint64_t)executable, (uint64_t)graph, &found);
    *result = (struct update_result){found, NULL, NULL};
    ANSWER(status);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) {
    CALL("cuThreadExchangeStreamCaptureMode");
    NEED(mode && *mode >= CAPTURE_GLOBAL && *mode <= CAPTURE_RELAXED, INVALID_VALUE);
    *mode = (int)capture_exchange_mode((enum capture_mode)*mode);
    ANSWER(OK);
}

// -- streams and events ----------------------------------------------------------------------------------------------

EXPORT int cuStreamGetId(void *handle, unsigned long long *identifier) {
    CALL("cuStreamGetId");
    NEED_STREAM(stream, handle);
    NEED(identifier, INVALID_VALUE);
    *identifier = stream->serial;  // nobody else's, in this process
    ANSWER(OK);
}

EXPORT int cuStreamGetDevice(void *handle, int *device) {
    CALL("cuStreamGetDevice");
    NEED_STREAM(stream, handle);
    NEED(device, INVALID_VALUE);
    *device = (int)stream->device;
    ANSWER(OK);
}

EXPORT int cuStreamGetCtx_v2(void *handle, void **context, void **part) {
    CALL("cuStreamGetCtx_v2");
    NEED_STREAM(stream, handle);
    NEED(context, INVALID_VALUE);
    *context = driver_handle(driver_context_of((uint64_t)handle, stream->device));
    if (part) *part = NULL;  // no stream is of a part of a device
    ANSWER(OK);
}

EXPORT int cuEventRecordWithFlags(void *event_handle, void *handle, unsigned flags) {
    CALL("cuEventRecordWithFlags");
    enum { EXTERNAL = 1 };
    NEED_STREAM(stream, handle);
    NEED(flags <= EXTERNAL, INVALID_VALUE);
    struct event *event = event_find((uint64_t)event_handle);
    NEED(event, INVALID_HANDLE);
    ANSWER(flags ? event_record_external(event, stream) : event_record(event, stream));
}

// The forms of CUDA 3, which took the same arguments: a client that looks functions up by their names finds these.
int cuStreamDestroy_v2(void *stream);  // both in cuda_streams.c
int cuEventDestroy_v2(void *event);
EXPORT int cuStreamDestroy(void *stream) { return cuStreamDestroy_v2(stream); }
EXPORT int cuEventDestroy(void *event) { return cuEventDestroy_v2(event); }
