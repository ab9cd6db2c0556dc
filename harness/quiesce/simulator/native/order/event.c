#include "order/event.h"

#include <stdlib.h>

#include "ledger/failure.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "order/capture.h"
#include "order/guard.h"
#include "order/driver_context.h"
#include "order/pieces.h"
#include "order/stream.h"

enum status event_create(unsigned device, bool timing, bool interprocess, struct event **made) {
    enum status failed = failure_meet(CALL_EVENT);
    if (failed) return failed;
    struct event *event = calloc(1, sizeof *event);
    if (!event) return OUT_OF_MEMORY;
    event->device = device;
    event->timing = timing;
    event->interprocess = interprocess;
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
    if (event->shared && event->imported) shared_close(event->shared);
    if (event->shared && !event->imported) __atomic_store_n(&event->shared->ended, 1, __ATOMIC_RELEASE);
    handle_drop(HIDDEN(event->hidden_handle));
    free(event);
}

struct event *event_find(uint64_t handle) { return handle_find(THING_EVENT, handle); }

enum status event_export(struct event *event, struct shared_handle *handle) {
    if (!event->interprocess || event->timing || event->imported) return INVALID_HANDLE;
    if (!event->shared && !(event->shared = shared_export(THING_EVENT, event->serial))) return OUT_OF_MEMORY;
    event->shared->device = event->device;
    shared_describe(event->shared, handle);
    return OK;
}

enum status event_import(const struct shared_handle *handle, struct event **made) {
    if (shared_is_own(handle)) return INVALID_CONTEXT;
    struct shared_entry *entry;
    const struct shared_table *table = shared_find(handle, THING_EVENT, &entry);
    if (!table || entry->device >= settings.devices) return INVALID_HANDLE;
    if (!shared_open(entry)) return OUT_OF_MEMORY;
    // It "behaves like a locally created event" (cudaIpcOpenEventHandle), so it is of the device that opens it.
    enum status status = event_create(device_current(), false, false, made);
    if (status) {
        shared_close(entry);
        return status;
    }
    (*made)->shared = entry;
    (*made)->imported = true;
    ledger_see((struct observation){.seen = SEEN_IMPORTED,
                                    .thing = THING_EVENT,
                                    .device = (uint16_t)(*made)->device,
                                    .stack = stack_of_call(),
                                    .object = (*made)->serial,
                                    .address = handle->serial,
                                    .other = table->process});
    return OK;
}

// "Performing operations on the imported event after the exported event has been freed with cuEventDestroy will result
// in undefined behavior" (cuIpcOpenEventHandle).
static void look_for_exporter(const struct event *event) {
    if (!event->imported || !__atomic_load_n(&event->shared->ended, __ATOMIC_ACQUIRE)) return;
    ledger_see_wrong((struct observation){.seen = SEEN_DEAD_HANDLE,
                                          .thing = THING_EVENT,
                                          .stack = stack_of_call(),
                                          .address = HIDDEN(event->hidden_handle),
                                          .object = event->serial});
}

static void see(enum seen seen, const struct event *event, const struct branch *branch) {
    bool dead = seen != SEEN_RECORDED && event->stream && !event->stream->alive;
    ledger_see((struct observation){.seen = (uint8_t)seen,
                                    .device = (uint16_t)(branch ? branch->device : event->device),
                                    .object = event->serial,
                                    .stream = branch ? branch->serial : 0,
                                    .flags = (uint16_t)((dead ? FLAG_STREAM_DEAD : 0) |
                                                        (event->capture ? FLAG_CAPTURED : 0) |
                                                        (branch && branch->node ? FLAG_OF_GRAPH : 0))});
}

static struct branch branch_of(const struct stream *stream) {
    return (struct branch){stream->device, stream->serial, NULL};
}

enum status event_record(struct event *event, struct stream *stream) {
    struct branch branch = branch_of(stream);
    return event_record_on(event, stream, &branch);
}

enum status event_record_on(struct event *event, struct stream *stream, const struct branch *branch) {
    look_for_exporter(event);
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
    see(SEEN_RECORDED, event, branch);
    stream_settle();
    return event->shared && event->point ? stream_force(event->point) : OK;
}

enum status event_wait(struct event *event, struct stream *stream) {
    struct branch branch = branch_of(stream);
    return event_wait_on(event, stream, &branch);
}

enum status event_wait_on(struct event *event, struct stream *stream, const struct branch *branch) {
    look_for_exporter(event);
    enum status status = capture_wait(stream, event);
    if (!status && stream->legacy) status = capture_forbid_default(stream->device);
    if (!status && event->stream) status = stream_order(stream);
    if (status) return status;
    see(SEEN_STREAM_WAITED, event, branch);
    guard_order(stream, event->stream);
    if (!event->capture && event->point) status = stream_wait(stream, event->point);
    stream_settle();
    return status;
}

static enum status put(const struct event *event, struct stream *stream, enum work_kind kind) {
    return stream_enqueue(stream, &(struct work){.kind = kind, .event = HIDDEN(event->hidden_handle)});
}

enum status event_record_external(struct event *event, struct stream *stream) {
    return stream->capture ? put(event, stream, WORK_RECORD) : event_record(event, stream);
}

enum status event_wait_external(struct event *event, struct stream *stream) {
    return stream->capture ? put(event, stream, WORK_AWAIT) : event_wait(event, stream);
}

enum status event_query(struct event *event) {
    look_for_exporter(event);
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
    look_for_exporter(event);
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
