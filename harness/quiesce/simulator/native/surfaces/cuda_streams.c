// The front end that answers as libcuda: streams, events and captures, as the runtime has them, and launching graphs.

#define LIBCUDA
#include "surfaces/calls.h"

#define API(name) cu##name
#define NAME(name) "cu" #name
#define ON(name) cu##name
#define NAME_ON(name) "cu" #name
#define OWN(name) driver_##name
#include "surfaces/capture_calls.inc"
#include "surfaces/user_object_calls.inc"

// -- streams ---------------------------------------------------------------------------------------------------------

static int create_stream(void **made, unsigned flags, int priority, const char *function) {
    CALL(function);
    NEED_CONTEXT;
    struct stream *stream;
    NEED(made && flags <= 1, INVALID_VALUE);
    priority = priority < -1 ? -1 : priority > 0 ? 0 : priority;
    status = stream_create(device_current(), flags, priority, &stream);
    if (!status) *made = (void *)HIDDEN(stream->hidden_handle);
    ANSWER(status);
}

EXPORT int cuStreamCreate(void **stream, unsigned flags) { return create_stream(stream, flags, 0, "cuStreamCreate"); }
EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    return create_stream(stream, flags, priority, "cuStreamCreateWithPriority");
}

EXPORT int cuStreamDestroy_v2(void *handle) {
    CALL("cuStreamDestroy_v2");
    struct stream *stream = (uint64_t)handle <= 2 ? NULL : stream_find((uint64_t)handle, 0, false);
    ANSWER(stream ? stream_destroy(stream) : INVALID_HANDLE);
}

EXPORT int cuStreamSynchronize(void *handle) {
    CALL("cuStreamSynchronize");
    NEED_STREAM(stream, handle);
    ANSWER(stream_synchronize(stream));
}

EXPORT int cuStreamQuery(void *handle) {
    CALL("cuStreamQuery");
    NEED_STREAM(stream, handle);
    ANSWER(stream_query(stream));
}

EXPORT int cuStreamWaitEvent(void *handle, void *event_handle, unsigned flags) {
    CALL("cuStreamWaitEvent");
    NEED_STREAM(stream, handle);
    struct event *event = event_find((uint64_t)event_handle);
    NEED(flags <= 1, INVALID_VALUE);  // 1: external, as below
    NEED(event, INVALID_HANDLE);
    ANSWER(flags ? event_wait_external(event, stream) : event_wait(event, stream));
}

EXPORT int cuStreamGetFlags(void *handle, unsigned *flags) {
    CALL("cuStreamGetFlags");
    NEED_STREAM(stream, handle);
    NEED(flags, INVALID_VALUE);
    *flags = stream->nonblocking;
    ANSWER(OK);
}

EXPORT int cuStreamGetPriority(void *handle, int *priority) {
    CALL("cuStreamGetPriority");
    NEED_STREAM(stream, handle);
    NEED(priority, INVALID_VALUE);
    *priority = stream->priority;
    ANSWER(OK);
}

EXPORT int cuStreamAddCallback(void *handle, void (*callback)(void *, int, void *), void *data, unsigned flags) {
    CALL("cuStreamAddCallback");
    NEED_STREAM(stream, handle);
    NEED(callback && !flags, INVALID_VALUE);
    NEED(!stream->capture, CAPTURE_UNSUPPORTED);
    struct host_call call = {.callback = callback, .stream = handle, .data = data};
    ANSWER(stream_enqueue(stream, &(struct work){.kind = WORK_HOST, .host = call}));
}

static int launch_host_function(void *handle, void (*function)(void *), void *data, unsigned mode, const char *called) {
    CALL(called);
    NEED_STREAM(stream, handle);
    NEED(function && mode <= 1, INVALID_VALUE);  // how the device waits for it
    struct host_call call = {.function = function, .data = data};
    ANSWER(stream_enqueue(stream, &(struct work){.kind = WORK_HOST, .host = call}));
}

EXPORT int cuLaunchHostFunc(void *handle, void (*function)(void *), void *data) {
    return launch_host_function(handle, function, data, 0, "cuLaunchHostFunc");
}
EXPORT int cuLaunchHostFunc_v2(void *handle, void (*function)(void *), void *data, unsigned mode) {
    return launch_host_function(handle, function, data, mode, "cuLaunchHostFunc_v2");
}

// -- events ----------------------------------------------------------------------------------------------------------

EXPORT int cuEventCreate(void **made, unsigned flags) {
    CALL("cuEventCreate");
    NEED_CONTEXT;
    enum { NO_TIMING = 2, INTERPROCESS = 4, KNOWN = 7 };
    struct event *event;
    NEED(made && flags <= KNOWN && ((flags & NO_TIMING) || !(flags & INTERPROCESS)), INVALID_VALUE);
    status = event_create(device_current(), !(flags & NO_TIMING), flags & INTERPROCESS, &event);
    if (!status) *made = (void *)HIDDEN(event->hidden_handle);
    ANSWER(status);
}

EXPORT int cuEventDestroy_v2(void *handle) {
    CALL("cuEventDestroy_v2");
    struct event *event = event_find((uint64_t)handle);
    NEED(event, INVALID_HANDLE);
    event_destroy(event);
    ANSWER(OK);
}

EXPORT int cuEventRecord(void *event_handle, void *handle) {
    CALL("cuEventRecord");
    NEED_STREAM(stream, handle);
    struct event *event = event_find((uint64_t)event_handle);
    ANSWER(event ? event_record(event, stream) : INVALID_HANDLE);
}

EXPORT int cuEventQuery(void *handle) {
    CALL("cuEventQuery");
    struct event *event = event_find((uint64_t)handle);
    ANSWER(event ? event_query(event) : INVALID_HANDLE);
}

EXPORT int cuEventSynchronize(void *handle) {
    CALL("cuEventSynchronize");
    struct event *event = event_find((uint64_t)handle);
    ANSWER(event ? event_synchronize(event) : INVALID_HANDLE);
}

static int elapsed(float *milliseconds, void *start, void *end, const char *function) {
    CALL(function);
    const struct event *first = event_find((uint64_t)start), *last = event_find((uint64_t)end);
    NEED(milliseconds, INVALID_VALUE);
    ANSWER(first && last ? event_elapsed(first, last, milliseconds) : INVALID_HANDLE);
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    return elapsed(milliseconds, start, end, "cuEventElapsedTime");
}
EXPORT int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
    return elapsed(milliseconds, start, end, "cuEventElapsedTime_v2");
}

// -- captures and graphs ---------------------------------------------------------------------------------------------

EXPORT int cuStreamBeginCapture_v2(void *handle, int mode) {
    CALL("cuStreamBeginCapture_v2");
    NEED_STREAM(stream, handle);
    NEED(mode >= CAPTURE_GLOBAL && mode <= CAPTURE_RELAXED, INVALID_VALUE);
    ANSWER(capture_begin(stream, (enum capture_mode)mode));
}

EXPORT int cuStreamEndCapture(void *handle, void **graph) {
    CALL("cuStreamEndCapture");
    NEED_STREAM(stream, handle);
    NEED(graph, INVALID_VALUE);
    uint64_t made = 0;
    status = capture_end(stream, &made);
    *graph = (void *)made;
    ANSWER(status);
}

EXPORT int cuStreamIsCapturing(void *handle, int *state) {
    CALL("cuStreamIsCapturing");
    NEED_STREAM(stream, handle);
    uint64_t identifier;
    NEED(state, INVALID_VALUE);
    *state = (int)capture_state(stream, &identifier);
    ANSWER(OK);
}

EXPORT int cuStreamGetCaptureInfo(void *handle, int *state, unsigned long long *identifier) {
    return driver_capture_info(handle, state, identifier, NULL, NULL, NULL, NULL, "cuStreamGetCaptureInfo");
}
// Headers of CUDA 13 give this one the name without a version.
EXPORT int cuStreamGetCaptureInfo_v3(void *handle, int *state, unsigned long long *identifier, void **graph,
                                     const void ***dependencies, const void **edges, size_t *count) {
    return driver_capture_info(handle, state, identifier, graph, dependencies, edges, count,
                               "cuStreamGetCaptureInfo_v3");
}

EXPORT int cuStreamBeginCaptureToGraph(void *handle, void *graph, void *const *nodes, const uint64_t *data,
                                       size_t count, int mode) {
    return driver_begin_into(handle, graph, nodes, data, count, mode, "cuStreamBeginCaptureToGraph");
}
EXPORT int cuStreamUpdateCaptureDependencies(void *handle, void *const *nodes, size_t count, unsigned flags) {
    return driver_depend(handle, nodes, NULL, count, flags, "cuStreamUpdateCaptureDependencies");
}
EXPORT int cuStreamUpdateCaptureDependencies_v2(void *handle, void *const *nodes, const uint64_t *data, size_t count,
                                                unsigned flags) {
    return driver_depend(handle, nodes, data, count, flags, "cuStreamUpdateCaptureDependencies_v2");
}

EXPORT int cuGraphLaunch(void *executable, void *handle) {
    CALL("cuGraphLaunch");
    NEED_STREAM(stream, handle);
    ANSWER(graph_launch((uint64_t)executable, stream));
}
