// Threads of the runtime's own that work beside the one that launched a kernel. They wait from one kernel to the next.
#pragma once

#include <stdbool.h>

enum { WORKERS_MAX = 64 };

// So many threads begin to work, beside this one; each is told its number, from 1 on. Returns how many there are.
unsigned workers_begin(unsigned count, void (*work)(unsigned number));

// Waits until all that have begun are at their end. The others need not begin. False: a signal came in between.
bool workers_wait(void);

// Those that still work leave what they run (watch_interrupt).
void workers_stop(void);
