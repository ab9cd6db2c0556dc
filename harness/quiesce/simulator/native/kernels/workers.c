#include "kernels/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "kernels/fault.h"
#include "machine/service_thread.h"

enum { STACK_BYTES = 64 << 10 };

static struct worker {
    pthread_t thread;
    sem_t begins;
    bool works;  // under the lock
    char stack[STACK_BYTES];  // for handlers of signals
} workers[WORKERS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t ended;
static unsigned made, called, left;  // threads, those that were told to work, and those of them that still do
static pid_t process;        // that they are of
static void (*work_of_all)(unsigned number);
static atomic_uint next;     // number of a thread that begins its life

static void set_works(struct worker *worker, bool works) {
    pthread_mutex_lock(&lock);
    worker->works = works;
    pthread_mutex_unlock(&lock);
}

static void *live(void *nothing) {
    unsigned number = atomic_fetch_add(&next, 1);
    struct worker *worker = &workers[number - 1];
    worker->thread = pthread_self();
    fault_begin_beside(worker->stack, sizeof worker->stack);
    for (;;) {
        while (sem_wait(&worker->begins)) continue;
        set_works(worker, true);
        work_of_all(number);
        set_works(worker, false);
        sched_yield();  // a signal that stops it comes now at the latest
        sem_post(&ended);
    }
    return nothing;
}

// A child of the process has none of its threads.
static void follow_process(void) {
    if (process == getpid()) return;
    process = getpid();
    made = 0;
    atomic_store(&next, 1);
    pthread_mutex_init(&lock, NULL);
    sem_init(&ended, 0, 0);
}

unsigned workers_begin(unsigned count, void (*work)(unsigned number)) {
    follow_process();
    if (count > WORKERS_MAX) count = WORKERS_MAX;
    for (; made < count; made++) {
        sem_init(&workers[made].begins, 0, 0);
        if (!service_thread_make(&workers[made].thread, live)) break;
    }
    if (count > made) count = made;
    work_of_all = work;
    called = left = count;
    for (unsigned i = 0; i < count; i++) sem_post(&workers[i].begins);
    return count;
}

bool workers_wait(void) {
    for (unsigned i = 0; i < called; i++)
        if (!sem_trywait(&workers[i].begins)) left--;  // it has not begun, and need not
    for (; left; left--)
        if (sem_wait(&ended)) return false;
    called = 0;
    fault_stop_beside(false);
    return true;
}

void workers_stop(void) {
    fault_stop_beside(true);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < made; i++)
        if (workers[i].works) pthread_kill(workers[i].thread, SIGSEGV);
    pthread_mutex_unlock(&lock);
}
