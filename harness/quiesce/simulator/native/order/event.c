#include "order/event.h"

#include <stdlib.h>

#include "ledger/failure.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "machine/hidden.h"
#include "order/capture.h"
#include "order/guard.h"
#include "order/driver_context.h"
#include "order/pieces.h"
#include "order/stream.h"

enum status event_create(unsigned device, bool timing, struct event **made) {
    enum status failed = failure_meet(CALL_EVENT);
    if (failed) return failed;
    struct event *event = calloc(1, sizeof *event);
    if (!event) return OUT_OF_MEMORY;
    event->device = device;
    event->timing = timing;
    uint64_t handle = handle_make(THING_EVENT, event, device, &event->serial, false);
    if (!handle) {
        free(event);
        return OUT_OF_MEMORY;
    }
    event->hidden_handle = HIDDEN(handle);
    *made = event;
    return OK;
}

static void forget(struct event *event) {
    point_drop(event->point);
    if (event->stream) stream_drop(event->stream);
    if (event->capture) capture_drop(event->capture);
    free(event->progress);
    event->point = NULL;
    event->stream = NULL;
    event->capture = NULL;
    event->progress = NULL;
}

void event_destroy(struct event *event) {
    forget(event);
    handle_drop(HIDDEN(event->hidden_handle));
    free(event);
}

struct event *event_find(uint64_t handle) { return handle_find(THING_EVENT, handle); }

static void see(enum seen seen, const struct event *event, const struct stream *stream) {
    bool dead = seen != SEEN_RECORDED && event->stream && !event->stream->alive;
    ledger_see((struct observation){.seen = (uint8_t)seen,
                                    .device = (uint16_t)(stream ? stream->device : event->device),
                                    .object = event->serial,
                                    .stream = stream ? stream->serial : 0,
                                    .flags = (uint16_t)((dead ? FLAG_STREAM_DEAD : 0) |
                                                        (event->capture ? FLAG_CAPTURED : 0))});
}

enum status event_record(struct event *event, struct stream *stream) {
    // Both "must be on the same CUDA context" (cudaEventRecord).
    unsigned context = driver_context_of(HIDDEN(event->hidden_handle), event->device);
    if (event->device != stream->device) return INVALID_HANDLE;
    if (context != driver_context_of(HIDDEN(stream->hidden_handle), stream->device)) return INVALID_HANDLE;
    struct point *point = NULL;
    struct progress *progress = NULL;
    enum status status = OK;
    if (stream->capture) {
        status = capture_progress(stream, &progress);
    } else {
        status = stream_order(stream);
        if (!status && !(point = stream_mark(stream))) status = OUT_OF_MEMORY;
    }
    if (status) return status;
    forget(event);
    event->point = point;
    event->progress = progress;
    event->stream = stream;
    stream_keep(stream);
    if (stream->capture) event->capture = capture_keep(stream->capture);
    event->recorded = ledger->ring_count;
    see(SEEN_RECORDED, event, stream);
    stream_settle();
    return OK;
}

enum status event_wait(struct event *event, struct stream *stream) {
    enum status status = capture_wait(stream, event);
    if (!status && stream->legacy) status = capture_forbid_default(stream->device);
    if (!status && event->stream) status = stream_order(stream);
    if (status) return status;
    see(SEEN_STREAM_WAITED, event, stream);
    guard_order(stream, event->stream);
    if (!event->capture && event->point) status = stream_wait(stream, event->point);
    stream_settle();
    return status;
}

enum status event_query(struct event *event) {
    enum status status = capture_forbid_event(event);
    if (!status) status = capture_forbid_unsafe();
    if (status) return status;
    uint64_t handle = HIDDEN(event->hidden_handle), serial = event->serial;
    if (event->point && !stream_poll(event->point)) return NOT_READY;
    event = event_find(handle);  // host functions may run without the lock: another thread may destroy it
    if (!event || event->serial != serial) return INVALID_HANDLE;
    see(SEEN_EVENT_COMPLETE, event, NULL);
    if (event->stream) guard_release(event->stream, event->recorded);
    return OK;
}

enum status event_synchronize(struct event *event) {
    enum status status = failure_meet(CALL_SYNCHRONIZE);
    if (!status) status = capture_forbid_event(event);
    if (!status) status = capture_forbid_unsafe();
    if (status) return status;
    see(SEEN_EVENT_WAITED, event, NULL);
    if (event->stream) guard_release(event->stream, event->recorded);
    return event->point ? stream_force(event->point) : OK;
}

enum status event_elapsed(const struct event *start, const struct event *end, float *milliseconds) {
    // "If either event was created with the cudaEventDisableTiming flag", or never recorded: invalid resource handle.
    if (!start->timing || !end->timing || !start->point || !end->point) return INVALID_HANDLE;
    if (!start->point->complete || !end->point->complete) return NOT_READY;
    *milliseconds = ((float)end->point->step - (float)start->point->step) / 1000;
    return OK;
}
