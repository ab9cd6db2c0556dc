// The front end that answers as libcuda: graphs, and what is asked about streams and events beside cuda_streams.c.

#define LIBCUDA
#include <string.h>

#include "surfaces/calls.h"

#define API(name) cu##name
#define NAME(name) "cu" #name
#define IS_HIP false
#include "surfaces/graph_calls.inc"

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

EXPORT int cuGraphNodeGetDependentNodes(void *node, void **nodes, size_t *count) {
    return get_neighbours(node, true, nodes, NULL, count, "cuGraphNodeGetDependentNodes");
}
EXPORT int cuGraphNodeGetDependentNodes_v2(void *node, void **nodes, uint64_t *data, size_t *count) {
    return get_neighbours(node, true, nodes, data, count, "cuGraphNodeGetDependentNodes_v2");
}
EXPORT int cuGraphNodeGetDependencies(void *node, void **nodes, size_t *count) {
    return get_neighbours(node, false, nodes, NULL, count, "cuGraphNodeGetDependencies");
}
EXPORT int cuGraphNodeGetDependencies_v2(void *node, void **nodes, uint64_t *data, size_t *count) {
    return get_neighbours(node, false, nodes, data, count, "cuGraphNodeGetDependencies_v2");
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
    if (flags && stream->capture)
        ANSWER(unsimulated("cuEventRecordWithFlags in a capture", "record the event after the graph's launch"));
    ANSWER(event_record(event, stream));
}

// The forms of CUDA 3, which took the same arguments: a client that looks functions up by their names finds these.
int cuStreamDestroy_v2(void *stream);  // both in cuda_streams.c
int cuEventDestroy_v2(void *event);
EXPORT int cuStreamDestroy(void *stream) { return cuStreamDestroy_v2(stream); }
EXPORT int cuEventDestroy(void *event) { return cuEventDestroy_v2(event); }
