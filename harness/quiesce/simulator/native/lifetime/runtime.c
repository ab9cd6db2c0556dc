#include "lifetime/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded false  // a C library before glibc 2.32 does not say
#endif

#include "code/module.h"
#include "ledger/failure.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/refusals.h"
#include "ledger/stacks.h"
#include "ledger/unsimulated.h"
#include "lifetime/interpreter.h"
#include "machine/device.h"
#include "memory/array.h"
#include "memory/memory.h"
#include "memory/pool.h"
#include "memory/virtual.h"
#include "order/capture.h"
#include "order/context.h"
#include "order/graph_memory.h"
#include "order/stream.h"
#include "order/user_object.h"
#include "reach/reach.h"
#include "surfaces/control.h"

struct settings settings;
uint64_t runtime_calls;

enum { COULD_NOT_START = 97 };  // the exit status; no vendor's runtime ends a process with it
enum { EXIT_SECONDS = 2 };      // how long the exit waits for a call of another thread

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t something_changed = PTHREAD_COND_INITIALIZER;
static bool starting, running, forked, unloading;
static bool refusing;  // all threads but `unloader`, or one: so every call asks one question
static pthread_t unloader;
static pthread_t refused;  // by runtime_refuse_thread(), while `refuses_one`
static bool refuses_one;
// Who holds the lock is the only thread of the process, and has not taken it. A signal's handler reads it.
static volatile bool alone;
static uint64_t unlocked;
static _Thread_local enum status last_error;

// Calls are short and many threads make them: one that sleeps in the lock costs the others a system call for each of
// their calls, and one that tries again and again slows down whoever holds it. So a thread tries a few times, then
// sleeps where nobody has to wake it: meanwhile the others are as fast as one alone. Behind something long, such as a
// large copy, it waits as usual.
static void take_lock(void) {
    enum { TRIES = 8, NAPS = 5, NAP_NANOSECONDS = 200000 };
    if (__libc_single_threaded) {
        alone = true;
        return;
    }
    for (unsigned i = 0; i < TRIES; i++) {
        if (!pthread_mutex_trylock(&lock)) return;
        __builtin_ia32_pause();
    }
    for (unsigned i = 0; i < NAPS; i++) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NANOSECONDS}, NULL);
        if (!pthread_mutex_trylock(&lock)) return;
    }
    pthread_mutex_lock(&lock);
}

static void release_lock(void) {
    if (alone)
        alone = false;
    else
        pthread_mutex_unlock(&lock);
}

// A child inherits no device: its calls are refused, and the parent's ledger is not mapped in it.
static void become_a_child(void) {
    pthread_mutex_init(&lock, NULL);
    alone = false;
    forked = running || starting;
}

static const char *asked_for(void) {
    const char *text = getenv("QUIESCE_SIMULATOR");
    return text ? text : "";
}

// Not with the first call: another thread may be in it when its process forks, and what it does may depend on the
// flavour's version. What is wrong in the settings is said where a machine starts.
__attribute__((constructor)) static void prepare(void) {
    pthread_atfork(NULL, NULL, become_a_child);
    settings_parse(&settings, asked_for());
}

// Returns what is wrong, or NULL; the text is static.
static const char *start(const char *text) {
    starting = true;
    const char *wrong = settings_parse(&settings, text);
    if (wrong) return wrong;
    wrong = failure_arm(settings.fail, settings.seed);
    if (wrong) return wrong;
    if (!ledger_open(settings.folder, settings.ring_entries)) return "its ledger can't be made in that folder";
    if (!stacks_open(settings.folder)) {
        ledger_close();
        return "its log of call stacks can't be made in that folder";
    }
    if (!memory_open()) {
        memory_close();
        stacks_close();
        ledger_close();
        return "the addresses of device memory are not free in this process, or RLIMIT_AS forbids to reserve them";
    }
    ledger->flavour = settings.flavour;
    ledger->version = settings.version;
    ledger->devices = settings.devices;
    ledger->capacity_bytes = settings.capacity_bytes;
    streams_open();
    devices_open();
    contexts_open();
    driver_open();
    unsimulated_open();
    refusals_open();
    running = true;
    starting = false;
    return NULL;
}

static void stop(void) {
    if (!running) return;
    user_objects_close();
    captures_close();
    streams_close();
    virtual_close();
    enum thing thing;
    for (uint64_t handle = 0; (handle = handle_next(handle, &thing));) context_destroy(handle, thing);
    pools_close();
    arrays_close();
    graph_memory_close();
    modules_close();
    handles_close();
    memory_close();
    stacks_close();
    ledger_close();
    last_error = OK;
    running = false;
}

// Another thread may be in a call, and may go on calling while this one exits: it is told that the runtime is being
// unloaded, for what it made after the search would look lost. A call that this thread itself never came back from, as
// when a signal's handler exits, leaves the lock taken: then nothing is searched, and nothing is said to be lost.
__attribute__((destructor)) static void exiting(void) {
    if ((!running && !starting) || forked || alone) return;
    struct timespec patience;
    clock_gettime(CLOCK_REALTIME, &patience);
    patience.tv_sec += EXIT_SECONDS;
    if (pthread_mutex_timedlock(&lock, &patience) || !running) return;
    reach_mark();
    ledger->exited = 1;
    unloading = refusing = true;
    unloader = pthread_self();
    pthread_mutex_unlock(&lock);
}

void runtime_refuse_thread(bool refuse) {
    refuses_one = refuse;
    refused = pthread_self();
    refusing = refuse || unloading;
}

static enum status refusal(void) {
    if (unloading && !pthread_equal(unloader, pthread_self())) return UNLOADING;
    return refuses_one && pthread_equal(refused, pthread_self()) ? NOT_PERMITTED : OK;
}

enum status runtime_enter(const char *function) {
    take_lock();
    if (forked) {
        refusal_note(REFUSAL_FORKED, function, NOT_INITIALIZED, NULL);
        return NOT_INITIALIZED;
    }
    if (refusing && refusal()) return refusal();
    if (!running) {
        const char *wrong = start(asked_for());
        if (wrong) {
            fprintf(stderr, "quiesce: the simulated runtime cannot start: %s\n", wrong);
            _exit(COULD_NOT_START);
        }
        if (*asked_for()) interpreter_watch();
    }
    runtime_calls++;
    ledger_enter(function);
    if (settings.stacks) stacks_new_call();
    return OK;
}

bool runtime_has_machine(void) { return running && !forked; }

// A query that says "not yet" did not fail, and a name that is looked up may not exist.
static void note_failure(enum status answer) {
    if (!forked && running && !ledger->made && answer != NOT_READY && answer != NOT_FOUND)
        refusal_note(REFUSAL_FAILED, ledger_entered(), answer, NULL);
}

int runtime_leave(enum status answer) {
    if (answer != OK) {
        last_error = answer;
        note_failure(answer);
    }
    release_lock();
    return (int)answer;
}

int runtime_leave_to_driver(enum status answer) {
    if (answer != OK) note_failure(answer);
    release_lock();
    return (int)answer;
}

uint64_t runtime_unlocked(void) { return unlocked; }
void runtime_unlock(void) {
    unlocked++;
    release_lock();
}
void runtime_lock(void) { take_lock(); }
void runtime_wait(void) {
    unlocked++;
    pthread_cond_wait(&something_changed, &lock);
}
bool runtime_wait_until(const struct timespec *end) {
    unlocked++;
    return pthread_cond_timedwait(&something_changed, &lock, end) == 0;
}
void runtime_expect_threads(void) {
    if (!alone) return;
    pthread_mutex_lock(&lock);
    alone = false;
}
void runtime_wake(void) { pthread_cond_broadcast(&something_changed); }

void runtime_pause(void) {
    runtime_unlock();
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    runtime_lock();
}

enum status runtime_last_error(bool reset) {
    enum status error = last_error;
    if (reset) last_error = OK;
    return error;
}

// -- for the backend, which drives the machine in its own process ----------------------------------------------------

EXPORT const char *quiesce_check(const char *text) {
    struct settings checked;
    const char *wrong = settings_parse(&checked, text);
    return wrong ? wrong : failure_check(checked.fail);
}

EXPORT const char *quiesce_open(const char *text) {
    take_lock();
    stop();
    const char *wrong = start(text);
    release_lock();
    return wrong;
}

EXPORT void quiesce_close(void) {
    take_lock();
    stop();
    release_lock();
}
