// The one simulated machine of this process: its settings, its lock, its beginning and its end.
//
// Every call of a front end holds the lock from runtime_enter() to runtime_leave(); only host functions that a client
// put on a stream run without it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "machine/settings.h"
#include "machine/status.h"

extern struct settings settings;
extern uint64_t runtime_calls;  // how many there were: whether any came in between

// Takes the lock and starts the machine where it is not running. Returns NOT_INITIALIZED in a child of fork(), for a
// device context is not inherited, and UNLOADING in other threads than the one that exits; the lock is held all the
// same.
enum status runtime_enter(const char *function);

bool runtime_has_machine(void);  // whether one runs in this process

// Whether the calls of this thread are refused (NOT_PERMITTED): while it runs what may make none.
void runtime_refuse_thread(bool refuse);

// Notes what a call answers as the thread's last error and releases the lock. Returns the answer.
int runtime_leave(enum status answer);

int runtime_leave_to_driver(enum status answer);  // the same for a call that is not the runtime's: notes nothing

// For host functions, and for waiting until another thread's has returned.
void runtime_unlock(void);
uint64_t runtime_unlocked(void);  // how often that was: who waited knows whether others had their turn
void runtime_lock(void);
void runtime_wait(void);
bool runtime_wait_until(const struct timespec *end);  // false: nobody woke the thread until then
void runtime_wake(void);

// Before a thread is made in the midst of a call: whoever was alone until then takes the lock that it went without.
void runtime_expect_threads(void);

// Lets other threads go on for a moment, without the lock.
void runtime_pause(void);

// The thread's last error; `reset` forgets it.
enum status runtime_last_error(bool reset);
