// Kernels that run for long: who waits is told of them, and Ctrl-C ends them. No kernel is ended for its time alone.
#pragma once

#include <setjmp.h>

#include "kernels/abi.h"

// Where a kernel that is to end goes on: sigsetjmp(watch_jump, 0) returns there a second time.
extern sigjmp_buf watch_jump;

void watch_begin(const char *name, const struct kernel_context *context);
void watch_end(void);

// Between these two a kernel is not ended, for the thread is in a function of the C library.
void watch_hold(void);
void watch_release(void);
