// A launch of a kernel that computes, as queues and graphs hold it; kernels/call.c has these functions.
#pragma once

#include <stdint.h>

struct kernel_call;

void kernel_call_keep(struct kernel_call *call);  // NULL: nothing computes
void kernel_call_drop(struct kernel_call *call);

// Runs it. A kernel that does not come to its end breaks the context of its device. `number`: of its observation.
void kernel_call_run(const struct kernel_call *call, uint64_t number);
