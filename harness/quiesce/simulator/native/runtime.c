#include "runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "control.h"
#include "device.h"
#include "event.h"
#include "failure.h"
#include "graph.h"
#include "handle.h"
#include "interpreter.h"
#include "ledger.h"
#include "memory.h"
#include "pool.h"
#include "reach.h"
#include "stream.h"

struct settings settings;

enum { COULD_NOT_START = 97 };  // the exit status; no vendor's runtime ends a process with it

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t host_function_returned = PTHREAD_COND_INITIALIZER;
static bool running, forked;
static _Thread_local enum status last_error;

// A child inherits no device: its calls are refused, and the parent's ledger is not mapped in it.
static void become_a_child(void) {
    pthread_mutex_init(&lock, NULL);
    forked = running;
}

// Returns what is wrong, or NULL; the text is static.
static const char *start(const char *text) {
    static bool handlers;
    const char *wrong = settings_parse(&settings, text);
    if (wrong) return wrong;
    if (!failure_arm(settings.fail, settings.seed)) return "'fail': write KIND:N, KIND:N+ or KIND:P%, then =CODE";
    if (!ledger_open(settings.folder, settings.ring_entries)) return "its ledger can't be made in that folder";
    if (!memory_open()) {
        memory_close();
        ledger_close();
        return "the addresses of device memory are not free in this process, or RLIMIT_AS forbids to reserve them";
    }
    ledger->flavour = settings.flavour;
    ledger->version = settings.version;
    ledger->devices = settings.devices;
    ledger->capacity_bytes = settings.capacity_bytes;
    streams_open();
    devices_open();
    running = true;
    if (!handlers) pthread_atfork(NULL, NULL, become_a_child);
    handlers = true;
    return NULL;
}

static void stop(void) {
    if (!running) return;
    captures_close();
    streams_close();
    enum thing thing;
    for (uint64_t handle = 0; (handle = handle_next(handle, &thing));) {
        void *object = handle_find(thing, handle);
        switch (thing) {
            case THING_STREAM: stream_destroy(object); break;
            case THING_EVENT: event_destroy(object); break;
            case THING_GRAPH: graph_destroy(handle); break;
            case THING_GRAPH_EXEC: graph_destroy_executable(handle); break;
            default: break;  // pools are closed together; a module has no object of its own
        }
    }
    pools_close();
    handles_close();
    memory_close();
    ledger_close();
    last_error = OK;
    running = false;
}

__attribute__((destructor)) static void exiting(void) {
    if (!running || forked) return;
    reach_mark();
    ledger->exited = 1;
}

enum status runtime_enter(const char *function) {
    pthread_mutex_lock(&lock);
    if (forked) return NOT_INITIALIZED;
    if (!running) {
        const char *text = getenv("QUIESCE_SIMULATOR");
        const char *wrong = start(text ? text : "");
        if (wrong) {
            fprintf(stderr, "quiesce: the simulated runtime cannot start: %s\n", wrong);
            _exit(COULD_NOT_START);
        }
        if (text) interpreter_watch();
    }
    ledger_enter(function);
    return OK;
}

int runtime_leave(enum status answer) {
    if (answer != OK) last_error = answer;
    pthread_mutex_unlock(&lock);
    return (int)answer;
}

void runtime_unlock(void) { pthread_mutex_unlock(&lock); }
void runtime_lock(void) { pthread_mutex_lock(&lock); }
void runtime_wait(void) { pthread_cond_wait(&host_function_returned, &lock); }
void runtime_wake(void) { pthread_cond_broadcast(&host_function_returned); }

void runtime_pause(void) {
    pthread_mutex_unlock(&lock);
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    pthread_mutex_lock(&lock);
}

enum status runtime_last_error(bool reset) {
    enum status error = last_error;
    if (reset) last_error = OK;
    return error;
}

// -- for the backend, which drives the machine in its own process ----------------------------------------------------

EXPORT const char *quiesce_open(const char *text) {
    pthread_mutex_lock(&lock);
    stop();
    const char *wrong = start(text);
    pthread_mutex_unlock(&lock);
    return wrong;
}

EXPORT void quiesce_close(void) {
    pthread_mutex_lock(&lock);
    stop();
    pthread_mutex_unlock(&lock);
}
