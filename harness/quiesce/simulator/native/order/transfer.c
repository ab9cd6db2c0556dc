#include "order/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/failure.h"
#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/forget.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "memory/client_memory.h"
#include "memory/places.h"
#include "memory/shadow.h"
#include "order/capture.h"
#include "order/graph_memory.h"
#include "order/guard.h"
#include "order/stream.h"

// The longest legal delays, from CUDA Runtime API, "API synchronization behavior" (12.4). HIP documents its copies in
// the same terms, and leaves open whether a synchronous copy between device addresses waits: here it does.
//
//   from       to         a synchronous call returns                 an asynchronous call returns
//   pageable   device     when the source was read (*)               when the source was read (**)
//   pinned     device     when the copy is complete                  at once
//   device     pageable   when the copy is complete                  when the copy is complete (***)
//   device     pinned     when the copy is complete                  at once
//   device     device     at once (CUDA)                             at once
//   host       host       when the copy is complete                  when the copy is complete
//
//   (*)   "will return once the pageable buffer has been copied to the staging memory …, but the DMA to final
//         destination may not have completed"; "a stream sync is performed before the copy is initiated"
//   (**)  "the driver may synchronize with the stream and stage the copy into pinned memory": older texts speak of a
//         worker thread; reading at once accuses nobody who is innocent under either
//   (***) "might be synchronous"; until CUDA 11 "will return only once the copy has completed"
//
// "A copy (in the implicit NULL stream) between the memories of two different devices does not start until all commands
// previously issued to either device have completed and runs to completion before any commands … issued after the copy
// to either device can start" (CUDA C++ Programming Guide, "Peer-to-Peer Memory Copy").
//
// Managed memory is device memory here, except that synchronous calls that touch it wait, as they did until CUDA 11.

enum place { PLACE_PAGEABLE, PLACE_PINNED, PLACE_DEVICE, PLACE_MANAGED };

// A larger source is not read into memory that the machine may lack: the whole copy runs before the call returns.
#define STAGED_BYTES_MAX (256ull << 20)

static _Thread_local uint64_t hidden_asked_about = HIDDEN(0ull);

static enum place place_of(uint64_t address) {
    switch (memory_find(address).thing) {
        case THING_DEVICE: return PLACE_DEVICE;
        case THING_MANAGED: return PLACE_MANAGED;
        case THING_PINNED:
        case THING_REGISTERED: return PLACE_PINNED;
        default: return PLACE_PAGEABLE;
    }
}

static bool is_host(enum place place) { return place <= PLACE_PINNED; }

static bool lies(enum place place, bool on_device) {
    return on_device ? place != PLACE_PAGEABLE : place != PLACE_DEVICE;  // pinned and managed memory is both
}

static void see_misdirected(uint64_t to, uint64_t from, struct shape shape, int kind, bool is_done) {
    enum { OF_SOURCE = 8, OF_TARGET = 16 };
    uint64_t places = (uint64_t)place_of(from) << OF_SOURCE | (uint64_t)place_of(to) << OF_TARGET;
    if (is_done && !settings.is_strict) return;
    ledger_see_wrong((struct observation){.seen = SEEN_COPY_MISDIRECTED,
                                          .thing = THING_DEVICE,
                                          .device = (uint16_t)device_current(),
                                          .stack = stack_of_call(),
                                          .flags = is_done ? FLAG_STRICT : 0,
                                          .object = (uint64_t)kind | places,
                                          .address = to,
                                          .other = from,
                                          .size_bytes = shape.width * shape.height});
}

enum status transfer_check_direction(uint64_t to, uint64_t from, struct shape shape, int kind) {
    enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };
    if (kind >= BY_ADDRESS || !shape.width || !shape.height) return OK;
    enum place source = place_of(from), target = place_of(to);
    bool from_device = kind == DEVICE_TO_HOST || kind == DEVICE_TO_DEVICE;
    bool to_device = kind == HOST_TO_DEVICE || kind == DEVICE_TO_DEVICE;
    bool is_right = lies(source, from_device) && lies(target, to_device);
    bool is_host = source == PLACE_PAGEABLE && target == PLACE_PAGEABLE;
    bool is_done = (!from_device || source != PLACE_PAGEABLE) && (!to_device || target != PLACE_PAGEABLE);
    if (!is_right && !is_host) see_misdirected(to, from, shape, kind, is_done);
    if (settings.flavour == FLAVOUR_HIP) return kind && is_host ? INVALID_VALUE : OK;
    return is_done ? OK : INVALID_VALUE;
}

static uint64_t extent(uint64_t pitch, uint64_t width, uint64_t height) {
    uint64_t bytes;
    if (!width || !height) return 0;
    bool overflows = __builtin_mul_overflow(height - 1, pitch, &bytes) || __builtin_add_overflow(bytes, width, &bytes);
    return overflows ? UINT64_MAX : bytes;
}

static enum status check_side(uint64_t address, uint64_t size_bytes, bool (*excepted)(uint64_t address)) {
    return excepted && excepted(address) ? OK : memory_check(address, size_bytes);
}

enum status transfer_check(const struct work *work, bool (*excepted)(uint64_t address)) {
    const struct copy *copy = &work->copy;
    const struct fill *fill = &work->fill;
    if (work->kind == WORK_FILL) return check_side(fill->to, extent(fill->pitch, fill->width, fill->height), excepted);
    if (work->kind != WORK_COPY) return OK;
    enum status status = check_side(copy->to, extent(copy->to_pitch, copy->width, copy->height), excepted);
    if (status) return status;
    return check_side(copy->from, extent(copy->from_pitch, copy->width, copy->height), excepted);
}

void transfer_observe(const struct stream *stream, const struct work *work, bool read_at_once) {
    struct branch branch = {stream->device, stream->serial, NULL};
    transfer_observe_on(&branch, work, read_at_once);
}

void transfer_observe_on(const struct branch *branch, const struct work *work, bool read_at_once) {
    struct observation seen = {.device = (uint16_t)branch->device,
                               .stack = branch->node ? branch->node->stack : stack_of_call(),
                               .function = branch->node ? branch->node->function : 0,
                               .stream = branch->serial,
                               .flags = branch->node ? FLAG_OF_GRAPH : 0};
    switch (work->kind) {
        case WORK_COPY:
            seen.seen = SEEN_COPIED;
            seen.address = work->copy.to;
            seen.other = work->copy.from;
            seen.size_bytes = extent(work->copy.to_pitch, work->copy.width, work->copy.height);
            seen.other_bytes = extent(work->copy.from_pitch, work->copy.width, work->copy.height);
            seen.flags |= read_at_once ? FLAG_STAGED : 0;
            break;
        case WORK_FILL:
            seen.seen = SEEN_WRITTEN;
            seen.address = work->fill.to;
            seen.size_bytes = extent(work->fill.pitch, work->fill.width, work->fill.height);
            break;
        case WORK_LAUNCH:
            seen.seen = SEEN_LAUNCHED;
            ledger->launches++;
            if (work->launch.call) ledger->computed++;
            if (work->launch.call && settings.checks) ledger->checked++;
            break;
        case WORK_VALUE:
            seen.seen = SEEN_STREAM_WAITED_VALUE;
            seen.address = work->value.address;
            guard_stop();
            break;
        default: return;
    }
    ledger_see(seen);
}

void transfer_asked_about_pinned(uint64_t address) { hidden_asked_about = HIDDEN(address); }

// A client that asks what lies at an address, is told that it is page-locked, and then copies the same bytes to the
// device out of another page-locked block has copied them for nothing. Bytes that are all alike prove nothing.
static void look_for_second_staging(uint64_t from, uint64_t size_bytes) {
    uint64_t asked = HIDDEN(hidden_asked_about);
    hidden_asked_about = HIDDEN(0ull);
    struct span original = memory_find(asked), copy = memory_find(from);
    if (!asked || original.thing != THING_PINNED || copy.thing != THING_PINNED || original.dead || copy.dead) return;
    if (original.start == copy.start || size_bytes < 2) return;
    if (asked + size_bytes > original.start + original.size_bytes) return;
    const char *bytes = (const char *)from;
    if (memcmp(bytes, bytes + 1, size_bytes - 1) == 0 || memcmp(bytes, (const char *)asked, size_bytes) != 0) return;
    ledger_see_wrong((struct observation){
        .seen = SEEN_STAGED_AGAIN, .thing = THING_PINNED, .stack = stack_of_call(), .address = from, .other = asked,
        .size_bytes = size_bytes});
}

static enum status stage(struct copy *copy) {
    copy->staged = malloc(copy->width * copy->height);
    if (!copy->staged) return OUT_OF_MEMORY;
    bool is_there = true;
    uint64_t size_bytes = extent(copy->from_pitch, copy->width, copy->height);
    guard_suspend(copy->from, size_bytes);
    for (uint64_t row = 0; row < copy->height && is_there; row++)
        is_there = client_memory_read((char *)copy->staged + row * copy->width, copy->from + row * copy->from_pitch,
                                      copy->width);
    guard_resume(copy->from, size_bytes);
    if (!is_there) forget(copy->staged, copy->width * copy->height);
    return is_there ? OK : INVALID_VALUE;
}

static enum status finish(struct stream *stream) {
    ledger_see((struct observation){
        .seen = SEEN_HOST_WAITED_WORK, .device = (uint16_t)stream->device, .stream = stream->serial});
    guard_release(stream, UINT64_MAX);
    return stream_finish(stream);
}

enum until { ENQUEUED, READ, COMPLETE };

// Host functions run without the lock meanwhile: another thread may destroy the stream.
static enum status perform(struct stream *stream, struct work *work, enum until until) {
    stream_keep(stream);
    enum status status = stream_enqueue(stream, work);
    if (!status && until == ENQUEUED) guard_set(stream, work);
    if (work->kind == WORK_COPY) forget(work->copy.staged, work->copy.width * work->copy.height);
    if (!status && until == COMPLETE) status = finish(stream);
    if (!status && until == READ) status = stream_finish(stream);  // a device may be later: nobody is told
    stream_drop(stream);
    return status;
}

static bool returns_complete(enum place from, enum place to, bool asynchronous) {
    if (is_host(from) && is_host(to)) return true;
    if (asynchronous) return to == PLACE_PAGEABLE;
    if (settings.flavour == FLAVOUR_HIP || from == PLACE_MANAGED || to == PLACE_MANAGED) return true;
    return is_host(to) || from == PLACE_PINNED;
}

// Waits for both devices where a copy of the default stream goes from one to another.
static enum status finish_peers(const struct stream *stream, uint64_t to, uint64_t from, bool *between_devices) {
    struct span source = memory_find(from), target = memory_find(to);
    *between_devices = stream->legacy && source.thing == THING_DEVICE && target.thing == THING_DEVICE &&
                       source.device != target.device;
    if (!*between_devices) return OK;
    enum status status = stream_finish_device(source.device);
    return status ? status : stream_finish_device(target.device);
}

// What the host is told by, if nobody has written what it reads.
static void name_copy(struct copy *copy) {
    copy->number = ledger->ring_count;
    copy->stack = stack_of_call();
    copy->function = ledger_function();
}

enum status transfer_copy(struct stream *stream, uint64_t to, uint64_t from, struct shape shape, bool asynchronous) {
    struct work work = {.kind = WORK_COPY,
                        .copy = {to, from, shape.to_pitch, shape.from_pitch, shape.width, shape.height,
                                 .staged = NULL}};
    enum status status = failure_meet(CALL_COPY);
    if (!status) status = transfer_check(&work, stream->capture ? graph_memory_covers : NULL);
    if (status || !shape.width || !shape.height) return status;
    enum place source = place_of(from), target = place_of(to);
    if (shadows_are_kept && source == PLACE_DEVICE && is_host(target)) name_copy(&work.copy);
    if (source == PLACE_PINNED && !is_host(target)) look_for_second_staging(from, shape.width);
    if (stream->capture) return asynchronous ? stream_enqueue(stream, &work) : capture_forbid_on(stream);
    bool complete = returns_complete(source, target, asynchronous), between_devices;
    if ((status = finish_peers(stream, to, from, &between_devices))) return status;
    bool reads_at_once = source == PLACE_PAGEABLE && !is_host(target);
    bool stages = reads_at_once && shape.width <= STAGED_BYTES_MAX / shape.height;
    if (reads_at_once && !asynchronous && (status = stream_synchronize(stream))) return status;
    if (stages && (status = stage(&work.copy))) return status;
    transfer_observe(stream, &work, reads_at_once);
    enum until until = complete || between_devices ? COMPLETE : reads_at_once && !stages ? READ : ENQUEUED;
    return perform(stream, &work, until);
}

enum status transfer_fill(struct stream *stream, struct fill fill, bool asynchronous) {
    struct work work = {.kind = WORK_FILL, .fill = fill};
    enum status status = transfer_check(&work, stream->capture ? graph_memory_covers : NULL);
    if (status || !fill.width || !fill.height) return status;
    enum place place = place_of(fill.to);
    if (place == PLACE_PAGEABLE) return INVALID_VALUE;
    if (!stream->capture) transfer_observe(stream, &work, false);
    // "asynchronous with respect to the host except when the target is pinned host memory or a Unified Memory region"
    bool waits = !asynchronous && !stream->capture && (place != PLACE_DEVICE || settings.flavour == FLAVOUR_HIP);
    return perform(stream, &work, waits ? COMPLETE : ENQUEUED);
}
