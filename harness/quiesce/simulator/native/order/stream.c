#include "order/stream.h"

#include <stdlib.h>

#include "ledger/failure.h"
#include "ledger/ledger.h"
#include "machine/lock.h"
#include "machine/random.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "memory/pool.h"
#include "order/capture.h"
#include "order/guard.h"
#include "order/host_thread.h"
#include "order/pieces.h"
#include "order/progress.h"
#include "order/running.h"

enum { QUEUE_MAX = 4096 };  // a device's queue is finite: behind so much work the oldest runs

static struct stream *busy;  // the streams that have work, or whose host function runs
static struct stream legacy[DEVICES_MAX];
static bool used_since[DEVICES_MAX];  // whether a device was given anything since the host last waited for it
static uint64_t dice;

static void see(enum seen seen, const struct stream *stream) {
    ledger_see((struct observation){.seen = seen, .device = (uint16_t)stream->device, .stream = stream->serial});
}

// -- lifetimes -------------------------------------------------------------------------------------------------------

void stream_keep(struct stream *stream) { stream->references++; }

void stream_drop(struct stream *stream) {
    if (--stream->references == 0) free(stream);
}

struct stream *stream_legacy(unsigned device) { return &legacy[device]; }

enum status streams_open(void) {
    upcalls.order = (struct order_upcalls){stream_finish_device, capture_forbid_unsafe, guard_leave_alone};
    dice = settings.seed ^ 0x5eed;
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        legacy[i] = (struct stream){.references = 1, .alive = true, .legacy = true, .device = i};
        legacy[i].tail = &legacy[i].head;
        used_since[i] = false;
    }
    return OK;
}

// -- queues ----------------------------------------------------------------------------------------------------------

static void become_busy(struct stream *stream) {
    stream_keep(stream);
    stream->busy_next = busy;
    if (busy) busy->busy_place = &stream->busy_next;
    stream->busy_place = &busy;
    busy = stream;
}

static void become_idle(struct stream *stream) {
    *stream->busy_place = stream->busy_next;
    if (stream->busy_next) stream->busy_next->busy_place = stream->busy_place;
    stream->busy_place = NULL;
    stream_drop(stream);
}

void stream_note_use(const struct stream *stream) {
    used_since[stream->device] = true;
}

static enum status push(struct stream *stream, const struct work *work) {
    struct work *made = work_new(work);
    if (!made) return OUT_OF_MEMORY;
    *stream->tail = made;
    stream->tail = &made->next;
    stream->queued++;
    stream_note_use(stream);
    if (!stream->busy_place) become_busy(stream);
    return OK;
}

static bool is_runnable(const struct stream *stream) {
    return stream->head && !stream->running && work_is_ready(stream->head);
}

static void host_function_returned(struct stream *stream) {
    stream->running = false;
    if (!stream->head) become_idle(stream);
}

// Runs the first piece of a stream's work. A host function gives the lock away meanwhile.
static void run_head(struct stream *stream) {
    struct work *work = stream->head;
    stream->head = work->next;
    if (!stream->head) stream->tail = &stream->head;
    stream->queued--;
    if (work->kind == WORK_HOST) {
        struct host_call call = work->host;
        work_delete(work);
        guard_release(stream, UINT64_MAX);
        see(SEEN_HOST_WAITED_WORK, stream);  // the host learns that the work before it is complete, and may tell others
        stream->running = true;
        host_thread_run(stream, &call, &stream->runner, host_function_returned);
        return;
    }
    work_run(work);
    work_delete(work);
    if (!stream->head) become_idle(stream);
}

static struct stream *runnable_at(uint64_t number, uint64_t *count) {
    *count = 0;
    struct stream *found = NULL;
    for (struct stream *stream = busy; stream; stream = stream->busy_next)
        if (is_runnable(stream) && (*count)++ == number) found = stream;
    return found;
}

// The seeded schedule: as much work as the dice say, from one stream or another.
static void drift(void) {
    uint64_t count;
    while (random_next(&dice) & 1) {
        runnable_at(UINT64_MAX, &count);
        if (!count) return;
        run_head(runnable_at(random_next(&dice) % count, &count));
    }
}

static enum status run_towards(struct stream *stream);

// Runs everything that nothing holds back, or of that only what takes no time: points, waits that are over.
static void run_ready(bool work_too) {
    for (struct stream *stream = busy; stream;) {
        bool runs = is_runnable(stream) && (work_too || !work_takes_time(stream->head));
        if (runs) run_head(stream);  // which may let others go, and a host function may change everything
        stream = runs ? busy : stream->busy_next;
    }
}

void stream_settle(void) {
    run_ready(settings.schedule == SCHEDULE_EAGER);
    if (settings.schedule == SCHEDULE_EAGER) return;
    if (settings.schedule == SCHEDULE_SEEDED) drift();
    for (struct stream *stream = busy; stream; stream = stream->busy_next)
        if (stream->queued > QUEUE_MAX) {
            run_towards(stream);
            break;
        }
    run_ready(false);
}

// -- order -----------------------------------------------------------------------------------------------------------

struct point *stream_mark(struct stream *stream) {
    struct point *point = point_new(stream);
    if (!point) return NULL;
    if (!stream->head && !stream->running) {
        point_pass(point);
        return point;
    }
    point_keep(point);
    if (push(stream, &(struct work){.kind = WORK_POINT, .point = point})) {
        point_drop(point);
        point_drop(point);
        return NULL;
    }
    return point;
}

enum status stream_wait(struct stream *stream, struct point *point) {
    if (point->complete) return OK;
    enum status status = push(stream, &(struct work){.kind = WORK_WAIT, .point = point_keep(point)});
    if (status) point_drop(point);
    return status;
}

static enum status wait_for_stream(struct stream *stream, struct stream *other) {
    struct point *point = stream_mark(other);
    if (!point) return OUT_OF_MEMORY;
    enum status status = stream_wait(stream, point);
    point_drop(point);
    return status;
}

enum status stream_order(struct stream *stream) {
    if (stream->nonblocking || stream->capture) return OK;
    if (!stream->legacy) {
        struct stream *other = &legacy[stream->device];
        return other->head || other->running ? wait_for_stream(stream, other) : OK;
    }
    guard_order_legacy(stream->device);
    enum status status = capture_forbid_default(stream->device);
    for (struct stream *other = busy; other && !status; other = other->busy_next)
        if (other != stream && other->device == stream->device && !other->nonblocking)
            status = wait_for_stream(stream, other);
    return status;
}

static void expect_progress(struct stream *stream) {
    struct point *point = settings.schedule == SCHEDULE_EAGER ? NULL : stream_mark(stream);
    if (point) progress_expect(point);
}

enum status stream_enqueue(struct stream *stream, const struct work *work) {
    if (stream->capture) return capture_add(stream, work);
    enum status status = stream_order(stream);
    struct work made = *work;
    if (made.kind == WORK_HOST) made.host.number = ledger->ring_count;
    if (!status) status = push(stream, &made);
    if (!status && made.kind == WORK_HOST) expect_progress(stream);
    stream_settle();
    return status;
}

// The stream whose work holds `stream` back in the end; its head is no wait for something incomplete.
static struct stream *holder_of(struct stream *stream) {
    while (!stream->running && stream->head->kind == WORK_WAIT && !stream->head->point->complete)
        stream = stream->head->point->stream;
    return stream;
}

// Runs one piece of the work that holds a point back. A stall ends when somebody waits for it.
static enum status run_towards(struct stream *stream) {
    stream = holder_of(stream);
    if (stream->running) {
        if (pthread_equal(stream->runner, pthread_self())) return NOT_PERMITTED;  // it would wait for itself
        lock_wait();
        return OK;
    }
    if (stream->head->kind == WORK_GATE) stream->head->open = true;
    if (!work_is_ready(stream->head)) {  // a value: another stream writes it, or another thread
        run_ready(true);
        lock_pause();
        return OK;
    }
    run_head(stream);
    return OK;
}

enum status stream_force(struct point *point) {
    enum status status = OK;
    point_keep(point);
    while (!point->complete && !status) {
        status = run_towards(point->stream);
        if (settings.schedule == SCHEDULE_SEEDED) drift();
    }
    point_drop(point);
    run_ready(settings.schedule == SCHEDULE_EAGER);
    return status;
}

// Lets a piece of work run when a client polls, so that polling comes to an end under every schedule.
static void run_a_piece(struct stream *stream) {
    stream = holder_of(stream);
    if (is_runnable(stream)) run_head(stream);
    run_ready(settings.schedule == SCHEDULE_EAGER);
}

bool stream_poll(struct point *point) {
    point_keep(point);
    if (!point->complete) run_a_piece(point->stream);
    bool complete = point->complete;
    point_drop(point);
    return complete;
}

// -- synchronisation -------------------------------------------------------------------------------------------------

enum status stream_finish(struct stream *stream) {
    struct point *point = stream_mark(stream);
    if (!point) return OUT_OF_MEMORY;
    enum status status = stream_force(point);
    point_drop(point);
    return status;
}

// The first busy stream that a query or synchronisation of `stream` is about. The legacy default stream stands for
// every blocking one (CUDA C++ Programming Guide, "Prohibited and Unhandled Operations").
static struct stream *first_encompassed(const struct stream *stream) {
    struct stream *other = busy;
    while (other && other != stream &&
           !(stream->legacy && other->device == stream->device && !other->nonblocking))
        other = other->busy_next;
    return other;
}

enum status stream_query(struct stream *stream) {
    enum status status = capture_forbid_on(stream);
    if (!status && stream->legacy) status = capture_forbid_default(stream->device);
    if (!status) status = capture_forbid_beside();
    if (status) return status;
    struct stream *pending = first_encompassed(stream);
    stream_keep(stream);
    if (pending) run_a_piece(pending);
    status = first_encompassed(stream) ? NOT_READY : OK;
    if (!status) {
        see(SEEN_STREAM_COMPLETE, stream);
        guard_release(stream, UINT64_MAX);
    }
    stream_drop(stream);
    return status;
}

enum status stream_synchronize(struct stream *stream) {
    enum status status = failure_meet(CALL_SYNCHRONIZE);
    if (!status) status = capture_forbid_on(stream);
    if (!status && stream->legacy) status = stream_order(stream);
    if (!status) status = capture_forbid_beside();
    if (status) return status;
    see(SEEN_STREAM_WAITED_FOR, stream);
    guard_release(stream, UINT64_MAX);
    unsigned device = stream->device;  // host functions run without the lock: it may be destroyed meanwhile
    status = stream_finish(stream);
    pools_release(device);
    return status;
}

enum status stream_synchronize_device(unsigned device) {
    enum status status = capture_forbid_device(device);
    return status ? status : stream_finish_device(device);
}

enum status stream_finish_device(unsigned device) {
    enum status status = OK;
    if (!used_since[device]) return status;
    used_since[device] = false;
    ledger_see((struct observation){.seen = SEEN_DEVICE_WAITED_FOR, .device = (uint16_t)device});
    guard_release_device(device);
    for (struct stream *stream = busy; stream && !status;) {
        bool concerned = stream->device == device;
        if (concerned) status = stream_finish(stream);
        stream = concerned ? busy : stream->busy_next;
    }
    pools_release(device);
    return status;
}

// -- stalls ----------------------------------------------------------------------------------------------------------

enum status stream_stall(struct stream *stream) {
    enum status status = stream_order(stream);
    return status ? status : push(stream, &(struct work){.kind = WORK_GATE});
}

void stream_release(uint64_t serial) {
    struct stream *stream = busy;
    while (stream && stream->serial != serial) stream = stream->busy_next;
    for (struct work *work = stream ? stream->head : NULL; work; work = work->next)
        if (work->kind == WORK_GATE) work->open = true;
    stream_settle();
}

void streams_close(void) {
    host_thread_finish();
    while (busy) {  // whatever is pending is given up
        struct stream *stream = busy;
        while (stream->head) {
            struct work *work = stream->head;
            stream->head = work->next;
            if (work->kind == WORK_POINT) work->point->complete = true;
            work_delete(work);
        }
        become_idle(stream);
    }
}
