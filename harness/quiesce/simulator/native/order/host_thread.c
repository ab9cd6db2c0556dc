#include "order/host_thread.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "machine/admission.h"
#include "machine/forget.h"
#include "machine/lock.h"
#include "machine/service_thread.h"
#include "order/schedule.h"

// A function that needs longer is likely to wait for the client: from then on none is waited for that long.
enum { PATIENCE_MILLISECONDS = 1000, LITTLE_MILLISECONDS = 2 };

static struct task {
    struct task *next;
    struct stream *stream;  // NULL: of none, and nobody is told when it has returned
    struct host_call call;
    void (*finished)(struct stream *);
    struct task *others[2];  // that are prepared: the one before and the one after it
} *tasks, **tail = &tasks;
static struct task *prepared;  // a list in both directions, through `others`
static uint64_t given, returned;  // how many: they run one behind another
static bool made;
static pthread_t thread;
static long patience_milliseconds = PATIENCE_MILLISECONDS;
static _Thread_local uint64_t reaches = UINT64_MAX;

uint64_t host_thread_reaches(void) { return reaches; }

static void run(struct stream *stream, const struct host_call *call, void (*finished)(struct stream *)) {
    if (!stream) admission_refuse_thread(true);
    uint64_t outer = reaches;
    reaches = call->number;
    lock_suspend();
    if (call->callback)
        call->callback(call->stream, OK, call->data);
    else
        call->function(call->data);
    lock_resume();
    reaches = outer;
    if (stream)
        finished(stream);
    else
        admission_refuse_thread(false);
    lock_wake();
}

static void *work(void *nothing) {
    lock_take();
    for (;;) {
        struct task *task = tasks;
        if (!task) {
            lock_wait();
            continue;
        }
        tasks = task->next;
        if (!tasks) tail = &tasks;
        run(task->stream, &task->call, task->finished);
        forget(task, sizeof *task);
        returned++;
        stream_settle();
    }
    return nothing;
}

static bool make_thread(void) {
    made = made || service_thread_make(&thread, work);
    return made;
}

static void wait_a_moment(uint64_t number) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += patience_milliseconds * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    while (returned < number)
        if (!lock_wait_until(&end)) {
            patience_milliseconds = LITTLE_MILLISECONDS;
            return;
        }
}

static bool is_here(void) { return made && pthread_equal(thread, pthread_self()); }

static void append(struct task *task) {
    *tail = task;
    tail = &task->next;
    given++;
    lock_wake();
}

void host_thread_run(struct stream *stream, const struct host_call *call, pthread_t *runner,
                     void (*finished)(struct stream *)) {
    struct task *task = is_here() ? NULL : malloc(sizeof *task);
    if (!task || !make_thread()) {
        free(task);
        *runner = pthread_self();
        run(stream, call, finished);
        return;
    }
    *task = (struct task){.stream = stream, .call = *call, .finished = finished};
    *runner = thread;
    append(task);
    wait_a_moment(given);
}

struct task *host_thread_prepare(const struct host_call *call) {
    struct task *task = make_thread() ? malloc(sizeof *task) : NULL;
    if (!task) return NULL;
    *task = (struct task){.call = *call, .others = {NULL, prepared}};
    if (prepared) prepared->others[0] = task;
    prepared = task;
    return task;
}

static void take_from_prepared(const struct task *task) {
    struct task *before = task->others[0], *after = task->others[1];
    if (before)
        before->others[1] = after;
    else
        prepared = after;
    if (after) after->others[0] = before;
}

void host_thread_give(struct task *task) {
    take_from_prepared(task);
    append(task);
}

void host_thread_forget(struct task *task) {
    if (task) take_from_prepared(task);
    forget(task, sizeof *task);
}

void host_thread_data(void (*see)(void *const *data)) {
    for (struct task *task = tasks; task; task = task->next) see(&task->call.data);
    for (struct task *task = prepared; task; task = task->others[1]) see(&task->call.data);
}

void host_thread_wait(void) {
    if (returned < given && !is_here()) wait_a_moment(given);
}

void host_thread_finish(void) {
    while (returned < given) lock_wait();
}
