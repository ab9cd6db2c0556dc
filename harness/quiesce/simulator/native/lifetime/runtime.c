#include "lifetime/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "code/module.h"
#include "code/prepared.h"
#include "code/symbol.h"
#include "kernels/checks.h"
#include "kernels/device_heap.h"
#include "kernels/grid.h"
#include "kernels/hosted.h"
#include "kernels/needs.h"
#include "kernels/initial.h"
#include "kernels/kernel.h"
#include "kernels/launch.h"
#include "kernels/request.h"
#include "kernels/shared_checks.h"
#include "ledger/current_test.h"
#include "ledger/failed_calls.h"
#include "ledger/failure.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/refusals.h"
#include "ledger/stacks.h"
#include "ledger/unsimulated.h"
#include "lifetime/interpreter.h"
#include "lifetime/reset.h"
#include "machine/admission.h"
#include "machine/device.h"
#include "machine/export.h"
#include "machine/loaded_runtime.h"
#include "machine/lock.h"
#include "machine/settings.h"
#include "memory/array.h"
#include "memory/imported.h"
#include "memory/memory.h"
#include "memory/pool.h"
#include "memory/virtual.h"
#include "order/capture.h"
#include "order/context.h"
#include "order/driver_context.h"
#include "order/graph_memory.h"
#include "order/guard.h"
#include "order/running.h"
#include "order/stream.h"
#include "order/stream_handles.h"
#include "order/system_calls.h"
#include "order/user_object.h"
#include "reach/reach.h"

enum { COULD_NOT_START = 97 };  // the exit status; no vendor's runtime ends a process with it
enum { EXIT_SECONDS = 2 };      // how long the exit waits for a call of another thread

static bool starting, running, forked;
static volatile bool *own_page;  // true in the process that made it; a child finds it empty, however it was forked
static _Thread_local enum status last_error;
static const char *turned_away;  // the function of the call that holds the lock, if its thread may make none

// A child inherits no device: its calls are refused, and the parent's ledger is not mapped in it.
static void become_a_child(void) {
    own_page = NULL;
    lock_renew();
    failed_calls_forget();
    forked = running || starting;
}

// A child of _Fork() or of the system call runs no handlers. What it copied of the lock may be taken.
static void notice_fork(void) {
    if (own_page && !*own_page) become_a_child();
}

static void make_own_page(void) {
    enum { PAGE_BYTES = 4096 };
    void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, PAGE_BYTES, MADV_WIPEONFORK)) return;
    own_page = page;
    *own_page = true;
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

static const char *why_not_in_folder(const char *what, int why) {
    static char text[FOLDER_BYTES + 256];
    const char *remedy = why == EFBIG    ? "; raise the limit of the size of files (ulimit -f)"
                         : why == ENOSPC ? "; set TMPDIR to a folder with more room"
                                         : "";
    snprintf(text, sizeof text, "its %s can't be made in %s: %s%s", what, settings.folder, strerror(why), remedy);
    return text;
}

// Returns what is wrong, or NULL; the text is static.
static const char *start(const char *text) {
    starting = true;
    const char *wrong = settings_parse(&settings, text);
    if (wrong) return wrong;
    loaded_runtime_follow(&settings);
    wrong = failure_arm(settings.fail, settings.seed);
    if (wrong) return wrong;
    if (!memory_open()) {
        wrong = memory_why_not();
        memory_close();
        return wrong;
    }
    if (!ledger_open(settings.folder, settings.ring_entries, settings.saved_bytes)) {
        int why = errno;
        memory_close();
        return why_not_in_folder("ledger", why);
    }
    if (!stacks_open(settings.folder)) {
        int why = errno;
        memory_close();
        ledger_discard();
        return why_not_in_folder("log of call stacks", why);
    }
    ledger->flavour = settings.flavour;
    ledger->version = settings.version;
    ledger->devices = settings.devices;
    ledger->capacity_bytes = settings.capacity_bytes;
    if (!own_page) make_own_page();
    streams_open();
    launches_open();
    stream_handles_open();
    devices_open();
    contexts_open();
    driver_open();
    unsimulated_open();
    running_open();
    system_calls_open();
    refusals_open();
    running = true;
    starting = false;
    return NULL;
}

static void stop(void) {
    if (!running) return;
    system_calls_close();
    guards_close();
    user_objects_close();
    captures_close();
    streams_close();
    virtual_close();
    enum thing thing;
    for (uint64_t handle = 0; (handle = handle_next(handle, &thing));) context_destroy(handle, thing);
    pools_close();
    arrays_close();
    graph_memory_close();
    checks_close();
    shared_checks_close();
    current_test_close();
    kernels_close();
    initials_close();
    requests_close();
    hosted_close();
    device_heaps_close();
    grids_close();
    modules_close();
    needs_close();
    prepared_close();
    symbols_close();
    handles_close();
    memory_close();
    failed_calls_close();
    stacks_close();
    ledger_close();
    last_error = OK;
    running = false;
}

// Another thread may be in a call, and may go on calling while this one exits: it is told that the runtime is being
// unloaded, for what it made after the search would look lost. A call that this thread itself never came back from, as
// when a signal's handler exits, leaves the lock taken: then nothing is searched, and nothing is said to be lost.
__attribute__((destructor)) static void exiting(void) {
    notice_fork();
    if ((!running && !starting) || forked) return;
    struct timespec patience;
    clock_gettime(CLOCK_REALTIME, &patience);
    patience.tv_sec += EXIT_SECONDS;
    if (!lock_take_until(&patience) || !running) return;
    guard_release_all();
    reach_mark();
    imported_exit();
    shared_exit();
    ledger->exited = 1;
    admission_unload();
    lock_release();
}

static void search_anew(void) {
    if (runtime_enter(NULL) == OK) {
        guard_release_all();
        reach_forget();
        reach_mark();
    }
    runtime_leave_to_driver(OK);
}

enum status runtime_enter(const char *function) {
    notice_fork();
    lock_take();
    if (forked) {
        refusal_note(REFUSAL_FORKED, function, NOT_INITIALIZED, NULL);
        return NOT_INITIALIZED;
    }
    enum status refused = admission_ask();
    if (refused) {
        turned_away = function ? function : "";
        return refused;
    }
    if (!running) {
        const char *wrong = start(asked_for());
        if (wrong) {
            refusal_note_start(function, wrong);
            fprintf(stderr, "quiesce: the simulated runtime cannot start: %s\n", wrong);
            _exit(COULD_NOT_START);
        }
        if (*asked_for()) interpreter_watch(search_anew);
    }
    admission_calls++;
    ledger_enter(function);
    if (settings.stacks) stacks_new_call();
    if (__builtin_expect(shared_any, false)) {
        shared_tick();
        imported_look();
    }
    return OK;
}

bool runtime_has_machine(void) { return running && !forked; }

// A thread that may make no call now has a stack of its own, while that of another call is kept.
static void note_turned_away(enum status answer, bool keeps) {
    stacks_new_call();
    failed_calls_note(turned_away, answer, 0, keeps);
    stacks_new_call();
}

// A query that says "not yet" did not fail, and a name that is looked up may not exist. What is not simulated is told
// by itself, and at the end of the process calls fail that nobody waits for. `keeps`: it becomes the last error.
static void note_failure(enum status answer, bool keeps) {
    if (forked || !running || answer == NOT_READY) return;
    bool is_first = ledger->made == driver_contexts_made;
    if (is_first && answer != NOT_FOUND) refusal_note(REFUSAL_FAILED, ledger_entered(), answer, NULL);
    if (answer == UNLOADING) return;
    if (turned_away) {
        note_turned_away(answer, keeps);
        return;
    }
    if (unsimulated_in_call()) return;
    unsigned flags = (failure_in_call() ? FAILED_INJECTED : 0) | (answer == context_error() ? FAILED_AFTERWARDS : 0);
    failed_calls_note(ledger_entered(), answer, flags, keeps);
}

int runtime_leave(enum status answer) {
    if (answer != OK) {
        bool is_news = answer != NOT_READY || settings.flavour == FLAVOUR_HIP;  // CUDA keeps it for itself
        if (is_news) last_error = answer;
        note_failure(answer, is_news);
    }
    turned_away = NULL;
    lock_release();
    return (int)answer;
}

int runtime_leave_to_driver(enum status answer) {
    if (answer != OK) note_failure(answer, false);
    turned_away = NULL;
    lock_release();
    return (int)answer;
}

enum status runtime_last_error(bool reset) {
    enum status error = last_error;
    if (reset && error) {
        last_error = OK;
        failed_calls_fetched();
    }
    return error;
}

// -- for the backend, which drives the machine in its own process ----------------------------------------------------

EXPORT const char *quiesce_check(const char *text) {
    struct settings checked;
    const char *wrong = settings_parse(&checked, text);
    return wrong ? wrong : failure_check(checked.fail);
}

EXPORT const char *quiesce_open(const char *text) {
    lock_take();
    stop();
    const char *wrong = start(text);
    lock_release();
    return wrong;
}

EXPORT void quiesce_close(void) {
    lock_take();
    stop();
    lock_release();
}
