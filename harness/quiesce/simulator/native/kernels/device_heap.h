// malloc and free of device code: a heap of 8 MiB, which is the default limit of a device ("The device memory heap has
// a fixed size": CUDA C++ Programming Guide, "Dynamic Global Memory Allocation"). It lasts as long as the machine.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/wrong_access.h"

struct kernel_context;

// 0: the heap is full. The last numbers are those of the instruction and of the thread in its block.
uint64_t quiesce_kernel_malloc(struct kernel_context *context, uint64_t bytes, uint32_t site, uint32_t thread);
void quiesce_kernel_free(struct kernel_context *context, uint64_t address);

// Whether bytes lie in a block that was allocated there.
bool device_heap_covers(uint64_t address, uint64_t bytes);

// The block that an access outside of all misses, or one that was freed. SEEN_NOTHING: none is near.
enum seen device_heap_miss(uint64_t address, struct wrong_access *wrong);

uint64_t device_heap_calls(void);  // of kernels, so far
void device_heap_close(void);
