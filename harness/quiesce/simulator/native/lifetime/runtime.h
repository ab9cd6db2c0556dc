// The one simulated machine of this process: its beginning, its calls and its end.
//
// Every call of a front end holds the lock (lock.h) from runtime_enter() to runtime_leave().
#pragma once

#include <stdbool.h>

#include "machine/status.h"

// Takes the lock and starts the machine where it is not running. Returns NOT_INITIALIZED in a child of fork(), for a
// device context is not inherited, and UNLOADING in other threads than the one that exits; the lock is held all the
// same.
enum status runtime_enter(const char *function);

bool runtime_has_machine(void);  // whether one runs in this process

// Notes what a call answers as the thread's last error and releases the lock. Returns the answer.
int runtime_leave(enum status answer);

int runtime_leave_to_driver(enum status answer);  // the same for a call that is not the runtime's: notes nothing

// The thread's last error; `reset` forgets it.
enum status runtime_last_error(bool reset);
