// Kernels that run for long: who waits is told of them, and Ctrl-C and SIGTERM end them. No kernel is ended for its
// time alone, unless the run asks for it (--kernel-seconds).
#pragma once

#include <setjmp.h>
#include <stdbool.h>

#include "kernels/abi.h"

// Where a kernel that is to end goes on: sigsetjmp(watch_jump, 0) returns there a second time, with an enum kernel_end.
// Each thread that runs blocks has its own.
extern _Thread_local sigjmp_buf watch_jump;
_Noreturn void watch_leave(enum kernel_end how);

// What the signal does that stops a kernel, on any thread that runs blocks of it.
void watch_interrupt(void);

void watch_begin(const char *name);
void watch_block(const struct kernel_context *context);  // which block runs
const struct kernel_context *watch_context(void);
const uint32_t *watch_index(void);  // of that block
void watch_spins(bool spins);  // the blocks that have begun only look at memory again and again
void watch_end(void);

// Sends the signal again that stopped a kernel, if it ends the client.
void watch_die(void);

// Between these two a kernel is not ended, for the thread is in a function of the C library.
void watch_hold(void);
void watch_release(void);

// In between: whether the kernel is to end. Then the thread may end what it does, and say that it goes no further.
bool watch_is_interrupted(void);
enum kernel_end watch_give_up(void);
