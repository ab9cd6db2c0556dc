#include "order/stream_handles.h"

#include <stdlib.h>

#include "ledger/failure.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "memory/pool.h"
#include "order/capture.h"
#include "order/stream.h"

static uint32_t generation;  // of the machine: a thread's own streams belong to one
static _Thread_local struct {
    uint32_t generation;
    uint32_t numbers[DEVICES_MAX];  // of their handles
} own;

enum status stream_create(unsigned device, bool nonblocking, int priority, struct stream **made) {
    enum status failed = failure_meet(CALL_STREAM);
    if (failed) return failed;
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream) return OUT_OF_MEMORY;
    *stream = (struct stream){
        .references = 1, .alive = true, .nonblocking = nonblocking, .device = device, .priority = priority};
    stream->tail = &stream->head;
    uint64_t handle = handle_make(THING_STREAM, stream, device, &stream->serial, nonblocking);
    if (!handle) {
        free(stream);
        return OUT_OF_MEMORY;
    }
    stream->hidden_handle = HIDDEN(handle);
    *made = stream;
    return OK;
}

enum status stream_destroy(struct stream *stream) {
    capture_leave(stream);
    if (settings.flavour == FLAVOUR_HIP && stream->head) {
        ledger_see((struct observation){
            .seen = SEEN_STREAM_WAITED_FOR, .device = (uint16_t)stream->device, .stream = stream->serial});
        stream_keep(stream);
        enum status status = stream_finish(stream);
        bool gone = !stream->alive;  // host functions ran without the lock: somebody else may have destroyed it
        stream_drop(stream);
        if (status || gone) return status ? status : INVALID_HANDLE;
    }
    stream->alive = false;
    handle_drop(HIDDEN(stream->hidden_handle));
    stream_drop(stream);
    return OK;
}

static struct stream *own_stream(unsigned device) {
    if (own.generation != generation) {
        own.generation = generation;
        for (unsigned i = 0; i < DEVICES_MAX; i++) own.numbers[i] = 0;
    }
    uint32_t number = own.numbers[device];
    struct stream *stream = number ? handle_find(THING_STREAM, handle_numbered(number)) : NULL;
    if (!stream && stream_create(device, false, 0, &stream) == OK) {
        own.numbers[device] = handle_number(HIDDEN(stream->hidden_handle));
        handle_disown(HIDDEN(stream->hidden_handle));
    }
    return stream;
}

struct stream *stream_find(uint64_t handle, unsigned device, bool zero_is_own) {
    if (handle == 2 || (handle == 0 && zero_is_own)) return own_stream(device);
    if (handle <= 1) return stream_legacy(device);
    return handle_find(THING_STREAM, handle);
}

static bool may_run_beside(const struct stream *stream, const struct stream *other, unsigned device) {
    if (stream == other) return false;
    return other->device != device || stream || other->nonblocking;
}

bool stream_may_run_beside(uint64_t serial, unsigned device) {
    const struct stream *stream = NULL;
    enum thing thing;
    for (unsigned peer = 0; peer < settings.devices; peer++)
        if (peer != device && (device_may_use(peer, device) || pools_let(device, peer))) return true;
    for (uint64_t at = handle_next(0, &thing); at && serial; at = handle_next(at, &thing)) {
        const struct stream *each = thing == THING_STREAM ? handle_find(THING_STREAM, at) : NULL;
        if (each && each->serial == serial) stream = each;
    }
    if (serial && (!stream || stream->nonblocking)) return true;  // the legacy one does not wait for it
    for (uint64_t at = handle_next(0, &thing); at; at = handle_next(at, &thing)) {
        const struct stream *each = thing == THING_STREAM ? handle_find(THING_STREAM, at) : NULL;
        if (each && may_run_beside(stream, each, device)) return true;
    }
    return false;
}

void stream_handles_open(void) { generation++; }
