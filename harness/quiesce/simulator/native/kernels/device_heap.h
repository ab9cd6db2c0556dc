// malloc and free of device code: a heap of 8 MiB on each device, or as large as the client asked for ("The device
// memory heap has a fixed size": CUDA C++ Programming Guide, "Dynamic Global Memory Allocation"). Its blocks lie in the
// memory of the device, have entries in the live table, and last until the device is reset.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"

struct kernel_context;

// 0: the heap is full. The last numbers are those of the instruction and of the thread in its block. A free that is
// wrong ends the kernel, as on a device.
uint64_t quiesce_kernel_malloc(struct kernel_context *context, uint64_t bytes, uint32_t site, uint32_t thread);
void quiesce_kernel_free(struct kernel_context *context, uint64_t address, uint32_t site, uint32_t thread);

// Sets a limit of the current device: that of the heap not after a kernel used it (cudaDeviceSetLimit).
enum status device_heap_set_limit(int limit, size_t bytes);

uint64_t device_heap_calls(void);  // of kernels, so far
void device_heap_reset(unsigned device);
void device_heaps_close(void);
