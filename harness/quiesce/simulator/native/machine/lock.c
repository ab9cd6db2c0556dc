#include "machine/lock.h"

#include <pthread.h>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded false  // a C library before glibc 2.32 does not say
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t something_changed = PTHREAD_COND_INITIALIZER;
volatile bool lock_alone;
volatile uint64_t lock_owner;
static uint64_t suspensions;

// Calls are short and many threads make them: one that sleeps in the lock costs the others a system call for each of
// their calls, and one that tries again and again slows down whoever holds it. So a thread tries a few times, then
// sleeps where nobody has to wake it: meanwhile the others are as fast as one alone. Behind something long, such as a
// large copy, it waits as usual.
static void take(void) {
    enum { TRIES = 8, NAPS = 5, NAP_NANOSECONDS = 200000 };
    if (__libc_single_threaded) {
        lock_alone = true;
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

void lock_take(void) {
    take();
    lock_owner = (uint64_t)pthread_self();
}

bool lock_is_held(void) { return lock_owner == (uint64_t)pthread_self(); }

void lock_release_taken(void) { pthread_mutex_unlock(&lock); }

bool lock_take_until(const struct timespec *end) {
    if (lock_alone || pthread_mutex_timedlock(&lock, end)) return false;
    lock_owner = (uint64_t)pthread_self();
    return true;
}

void lock_suspend(void) {
    suspensions++;
    lock_release();
}

void lock_resume(void) { lock_take(); }

uint64_t lock_suspensions(void) { return suspensions; }

void lock_wait(void) {
    suspensions++;
    lock_owner = 0;
    pthread_cond_wait(&something_changed, &lock);
    lock_owner = (uint64_t)pthread_self();
}

bool lock_wait_until(const struct timespec *end) {
    suspensions++;
    lock_owner = 0;
    bool is_woken = pthread_cond_timedwait(&something_changed, &lock, end) == 0;
    lock_owner = (uint64_t)pthread_self();
    return is_woken;
}

void lock_wake(void) { pthread_cond_broadcast(&something_changed); }

void lock_pause(void) {
    lock_suspend();
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    lock_resume();
}

void lock_expect_threads(void) {
    if (!lock_alone) return;
    pthread_mutex_lock(&lock);
    lock_alone = false;
}

void lock_renew(void) {
    pthread_mutex_init(&lock, NULL);
    lock_alone = false;
    lock_owner = 0;
}
