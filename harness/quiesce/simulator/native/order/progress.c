#include "order/progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "ledger/ledger.h"
#include "machine/admission.h"
#include "machine/lock.h"
#include "machine/service_thread.h"
#include "order/pieces.h"
#include "order/schedule.h"

// Who waited for one function without a call waits for others so: from then on each has to wait less long.
enum { PATIENCE_MILLISECONDS = 3000, LITTLE_MILLISECONDS = 20 };

static struct awaited {
    struct awaited *next;
    struct point *point;
} *first, **last = &first;
static bool made;
static long patience_milliseconds = PATIENCE_MILLISECONDS;

static void forget_complete(void) {
    while (first && first->point->complete) {
        struct awaited *over = first;
        first = over->next;
        if (!first) last = &first;
        point_drop(over->point);
        free(over);
    }
}

static void *watch(void *nothing) {
    lock_take();
    for (;;) {
        forget_complete();
        if (!first) {
            lock_wait();
            continue;
        }
        uint64_t calls = admission_calls;
        lock_suspend();
        nanosleep(&(struct timespec){patience_milliseconds / 1000, patience_milliseconds % 1000 * 1000000}, NULL);
        lock_resume();
        forget_complete();
        if (!first || calls != admission_calls || ledger->exited) continue;
        patience_milliseconds = LITTLE_MILLISECONDS;
        stream_force(first->point);
    }
    return nothing;
}

void progress_expect(struct point *point) {
    struct awaited *awaited = malloc(sizeof *awaited);
    if (!awaited) {
        point_drop(point);
        return;
    }
    *awaited = (struct awaited){NULL, point};
    *last = awaited;
    last = &awaited->next;
    pthread_t thread;
    made = made || service_thread_make(&thread, watch);
    lock_wake();
}
