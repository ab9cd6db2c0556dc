#include "kernels/watch.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "machine/service_thread.h"
#include "machine/settings.h"

enum { STOPPABLE_SECONDS = 1, FIRST_TOLD_SECONDS = 10, SIGNALS = 2 };
static const int NUMBERS[SIGNALS] = {SIGINT, SIGTERM};

_Thread_local sigjmp_buf watch_jump;

static struct {
    const char *name;
    const struct kernel_context *volatile context;
    volatile bool spins;
    pthread_t runner;
} watched;
static volatile uint64_t begun, ended;  // kernels: one runs where they differ

static pthread_mutex_t handling = PTHREAD_MUTEX_INITIALIZER;  // of the signal, and of what `watched` has
static bool handled;
static struct sigaction before[SIGNALS];
static sem_t woken;
static bool made;
static volatile bool idle;

static _Thread_local volatile sig_atomic_t held, wanted;
static volatile sig_atomic_t passed_on;
static volatile sig_atomic_t deadly;  // the signal that ends the client, once the kernel was left
static volatile sig_atomic_t out_of_time;

static enum kernel_end how_to_end(void) { return out_of_time ? ENDED_BY_TIME : ENDED_BY_USER; }

// -- the signal ------------------------------------------------------------------------------------------------------

void watch_leave(enum kernel_end how) {
    sigset_t signals;
    wanted = 0;
    sigemptyset(&signals);
    for (unsigned i = 0; i < SIGNALS; i++) sigaddset(&signals, NUMBERS[i]);
    if (pthread_equal(pthread_self(), watched.runner))
        pthread_sigmask(SIG_UNBLOCK, &signals, NULL);  // for the handler is left, and never returns
    siglongjmp(watch_jump, how);
}

void watch_interrupt(void) {
    if (held)
        wanted = 1;
    else
        watch_leave(how_to_end());
}

// What the client does about the signal. False: it is ignored. One that ends the client does so after its kernel was
// left and named.
static bool tell_client(int number, siginfo_t *about, void *state) {
    const struct sigaction *own = &before[number == NUMBERS[0] ? 0 : 1];
    if (own->sa_flags & SA_SIGINFO) {
        own->sa_sigaction(number, about, state);
        return true;
    }
    if (own->sa_handler == SIG_IGN) return false;
    if (own->sa_handler == SIG_DFL)
        deadly = number;
    else
        own->sa_handler(number);
    return true;
}

static void stop(int number, siginfo_t *about, void *state) {
    if (!passed_on && !out_of_time && !tell_client(number, about, state)) return;
    if (begun == ended) return;
    if (!pthread_equal(pthread_self(), watched.runner)) {
        passed_on = 1;
        pthread_kill(watched.runner, number);
        return;
    }
    passed_on = 0;
    watch_interrupt();
}

void watch_hold(void) { held = 1; }

void watch_release(void) {
    held = 0;
    if (wanted) watch_leave(how_to_end());
}

bool watch_is_interrupted(void) { return wanted; }

enum kernel_end watch_give_up(void) {
    held = wanted = 0;
    return how_to_end();
}

// -- the thread ------------------------------------------------------------------------------------------------------

static void become_stoppable(uint64_t number) {
    pthread_mutex_lock(&handling);
    if (begun == number && ended != number && !handled) {
        struct sigaction stopping = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO};
        sigemptyset(&stopping.sa_mask);
        handled = true;
        for (unsigned i = 0; i < SIGNALS; i++) handled &= !sigaction(NUMBERS[i], &stopping, &before[i]);
    }
    pthread_mutex_unlock(&handling);
}

static void end_for_time(uint64_t number) {
    pthread_mutex_lock(&handling);
    if (begun == number && ended != number && handled) {
        out_of_time = 1;
        pthread_kill(watched.runner, NUMBERS[0]);
    }
    pthread_mutex_unlock(&handling);
}

static void tell(uint64_t number, unsigned seconds) {
    pthread_mutex_lock(&handling);
    if (begun == number && ended != number) {
        const volatile struct kernel_context *context = watched.context;
        const char *why = watched.spins ? ", and its threads only wait for memory to change" : "";
        fprintf(stderr,
                "quiesce: kernel '%.200s' has been running for %u seconds: it is in block (%u, %u, %u) of "
                "(%u, %u, %u)%s; press Ctrl-C to stop it\n",
                watched.name, seconds, context->block_index[0], context->block_index[1], context->block_index[2],
                context->grid[0], context->grid[1], context->grid[2], why);
    }
    pthread_mutex_unlock(&handling);
}

static void follow(uint64_t number) {
    unsigned seconds = 0, told = FIRST_TOLD_SECONDS;
    while (begun == number && ended != number) {
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        seconds++;
        if (begun != number || ended == number) return;
        if (seconds == STOPPABLE_SECONDS) become_stoppable(number);
        if (seconds == settings.kernel_seconds) end_for_time(number);
        if (seconds < told) continue;
        tell(number, seconds);
        told *= 2;
    }
}

static void *watch(void *nothing) {
    for (;;) {
        idle = true;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (begun == ended) sem_wait(&woken);
        idle = false;
        follow(begun);
    }
    return nothing;
}

void watch_block(const struct kernel_context *context) { watched.context = context; }

const struct kernel_context *watch_context(void) { return watched.context; }

const uint32_t *watch_index(void) { return (const uint32_t *)watched.context->block_index; }

void watch_spins(bool spins) { watched.spins = spins; }

void watch_begin(const char *name) {
    pthread_t thread;
    if (!made) {
        sem_init(&woken, 0, 0);
        made = service_thread_make(&thread, watch);
    }
    pthread_mutex_lock(&handling);
    watched.name = name;
    watched.spins = false;
    watched.runner = pthread_self();
    begun++;
    pthread_mutex_unlock(&handling);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (idle) sem_post(&woken);
}

void watch_end(void) {
    pthread_mutex_lock(&handling);
    ended = begun;
    for (unsigned i = 0; handled && i < SIGNALS; i++) sigaction(NUMBERS[i], &before[i], NULL);
    handled = false;
    wanted = passed_on = held = out_of_time = 0;
    pthread_mutex_unlock(&handling);
}

void watch_die(void) {
    int number = deadly;
    deadly = 0;
    if (number) raise(number);
}
