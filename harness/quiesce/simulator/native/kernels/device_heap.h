// malloc and free of device code: a heap of 8 MiB, which is the default limit of a device ("The device memory heap has
// a fixed size": CUDA C++ Programming Guide, "Dynamic Global Memory Allocation"). It lasts as long as the machine.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kernel_context;

uint64_t quiesce_kernel_malloc(struct kernel_context *context, uint64_t bytes);  // 0: the heap is full
void quiesce_kernel_free(struct kernel_context *context, uint64_t address);

// Whether bytes lie in a block that was allocated there.
bool device_heap_covers(uint64_t address, uint64_t bytes);

uint64_t device_heap_calls(void);  // of kernels, so far
void device_heap_close(void);
