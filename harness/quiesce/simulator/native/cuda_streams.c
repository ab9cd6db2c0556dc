// The front end that answers as libcuda: streams, events and captures, as the runtime has them, and launching graphs.

#define LEAVE runtime_leave_to_driver
#include "calls.h"

#define API(name) cu##name
#define NAME(name) "cu" #name
#define ON(name) cu##name
#define NAME_ON(name) "cu" #name
#define OWN(name) driver_##name
static struct stream *driver_find(void *handle) { return stream_find((uint64_t)handle, device_current(), false); }
#include "capture_calls.inc"
#include "user_object_calls.inc"

// -- streams ---------------------------------------------------------------------------------------------------------

static int create_stream(void **made, unsigned flags, int priority, const char *function) {
    CALL(function);
    NEED(driver_has_context(), INVALID_CONTEXT);
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
    struct stream *stream = (uint64_t)handle <= 2 ? NULL : driver_find(handle);
    ANSWER(stream ? stream_destroy(stream) : INVALID_HANDLE);
}

EXPORT int cuStreamSynchronize(void *handle) {
    CALL("cuStreamSynchronize");
    struct stream *stream = driver_find(handle);
    ANSWER(stream ? stream_synchronize(stream) : INVALID_HANDLE);
}

EXPORT int cuStreamQuery(void *handle) {
    CALL("cuStreamQuery");
    struct stream *stream = driver_find(handle);
    ANSWER(stream ? stream_query(stream) : INVALID_HANDLE);
}

EXPORT int cuStreamWaitEvent(void *handle, void *event_handle, unsigned flags) {
    CALL("cuStreamWaitEvent");
    struct stream *stream = driver_find(handle);
    struct event *event = event_find((uint64_t)event_handle);
    NEED(flags <= 1, INVALID_VALUE);
    ANSWER(stream && event ? event_wait(event, stream) : INVALID_HANDLE);
}

EXPORT int cuStreamGetFlags(void *handle, unsigned *flags) {
    CALL("cuStreamGetFlags");
    const struct stream *stream = driver_find(handle);
    NEED(stream, INVALID_HANDLE);
    NEED(flags, INVALID_VALUE);
    *flags = stream->nonblocking;
    ANSWER(OK);
}

EXPORT int cuStreamGetPriority(void *handle, int *priority) {
    CALL("cuStreamGetPriority");
    const struct stream *stream = driver_find(handle);
    NEED(stream, INVALID_HANDLE);
    NEED(priority, INVALID_VALUE);
    *priority = stream->priority;
    ANSWER(OK);
}

EXPORT int cuStreamAddCallback(void *handle, void (*callback)(void *, int, void *), void *data, unsigned flags) {
    CALL("cuStreamAddCallback");
    struct stream *stream = driver_find(handle);
    NEED(stream, INVALID_HANDLE);
    NEED(callback && !flags, INVALID_VALUE);
    NEED(!stream->capture, CAPTURE_UNSUPPORTED);
    struct host_call call = {.callback = callback, .stream = handle, .data = data};
    ANSWER(stream_enqueue(stream, &(struct work){.kind = WORK_HOST, .host = call}));
}

EXPORT int cuLaunchHostFunc(void *handle, void (*function)(void *), void *data) {
    CALL("cuLaunchHostFunc");
    struct stream *stream = driver_find(handle);
    NEED(stream, INVALID_HANDLE);
    NEED(function, INVALID_VALUE);
    struct host_call call = {.function = function, .data = data};
    ANSWER(stream_enqueue(stream, &(struct work){.kind = WORK_HOST, .host = call}));
}

// -- events ----------------------------------------------------------------------------------------------------------

EXPORT int cuEventCreate(void **made, unsigned flags) {
    CALL("cuEventCreate");
    NEED(driver_has_context(), INVALID_CONTEXT);
    enum { NO_TIMING = 2, INTERPROCESS = 4, KNOWN = 7 };
    struct event *event;
    NEED(made && flags <= KNOWN && ((flags & NO_TIMING) || !(flags & INTERPROCESS)), INVALID_VALUE);
    status = event_create(device_current(), !(flags & NO_TIMING), &event);
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
    struct stream *stream = driver_find(handle);
    struct event *event = event_find((uint64_t)event_handle);
    ANSWER(stream && event ? event_record(event, stream) : INVALID_HANDLE);
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
    struct stream *stream = driver_find(handle);
    NEED(stream, INVALID_HANDLE);
    NEED(mode >= CAPTURE_GLOBAL && mode <= CAPTURE_RELAXED, INVALID_VALUE);
    ANSWER(capture_begin(stream, (enum capture_mode)mode));
}

EXPORT int cuStreamEndCapture(void *handle, void **graph) {
    CALL("cuStreamEndCapture");
    struct stream *stream = driver_find(handle);
    NEED(stream, INVALID_HANDLE);
    NEED(graph, INVALID_VALUE);
    uint64_t made = 0;
    status = capture_end(stream, &made);
    *graph = (void *)made;
    ANSWER(status);
}

EXPORT int cuStreamIsCapturing(void *handle, int *state) {
    CALL("cuStreamIsCapturing");
    const struct stream *stream = driver_find(handle);
    uint64_t identifier;
    NEED(stream, INVALID_HANDLE);
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

EXPORT int cuGraphLaunch(void *executable, void *handle) {
    CALL("cuGraphLaunch");
    struct stream *stream = driver_find(handle);
    ANSWER(stream ? graph_launch((uint64_t)executable, stream) : INVALID_HANDLE);
}
