// How deep the functions of a kernel call each other. Each thread has as much stack as the client asked for
// (cudaLimitStackSize). A function that may call itself says how much of it each of its calls needs on any device at
// least: its local memory, and the address that it returns to.
#pragma once

#include <stdint.h>

struct kernel_context;

// Called by kernels. The first one does not return where there is no stack left.
void quiesce_kernel_enter(struct kernel_context *context, uint32_t bytes, uint32_t site, uint32_t thread);
void quiesce_kernel_leave(uint32_t bytes);

void call_stack_begin(unsigned device);  // of a launch
