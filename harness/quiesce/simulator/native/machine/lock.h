// The lock of this process's machine. A call holds it from its beginning to its end; only host functions that a client
// put on a stream run without it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

// Who holds the lock is the only thread of the process, and has not taken it. A signal's handler reads it.
extern volatile bool lock_alone;

// Who has the lock, as pthread_self() says; 0: nobody. A handler of a fault asks.
extern volatile uint64_t lock_owner;
bool lock_is_held(void);  // by this thread

void lock_take(void);
void lock_release_taken(void);

// Inline, for every call ends with it.
static inline void lock_release(void) {
    lock_owner = 0;
    if (lock_alone)
        lock_alone = false;
    else
        lock_release_taken();
}

// False: another thread held it until then, or this one left it taken in the midst of a call.
bool lock_take_until(const struct timespec *end);

// In the midst of a call, for host functions, and for waiting until another thread's has returned.
void lock_suspend(void);
void lock_resume(void);
uint64_t lock_suspensions(void);  // how many there were: who waited knows whether others had their turn
void lock_wait(void);
bool lock_wait_until(const struct timespec *end);  // false: nobody woke the thread until then
void lock_wake(void);

// Lets other threads go on for a moment, without the lock.
void lock_pause(void);

// Before a thread is made in the midst of a call: whoever was alone until then takes the lock that it went without.
void lock_expect_threads(void);

void lock_renew(void);  // in a child of fork(): nobody holds it there
