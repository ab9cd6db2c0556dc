// What kernels need, as clients ask it: attributes of functions, and how many blocks fit.
//
// Of a kernel that was compiled for the processor its PTX says it, apart from registers: a processor's are others.
// Of any other kernel nothing is known, and the figures are those of one that needs nothing but threads (module.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "code/module.h"

struct kernel_needs {
    int most_threads, shared_bytes, dynamic_bytes, constant_bytes, local_bytes;
};

// Of a function of a module, or of one of the client's own (`stub`), on the current device.
struct kernel_needs needs_of(uint64_t function, const void *stub);

// Sets what clients may set of a function on a device: how much dynamic shared memory a block may have there, which
// else is 48 KiB without what the kernel declares, and a wish for caches. What a device refuses is refused.
enum status needs_allow(uint64_t function, const void *stub, unsigned device, int attribute, int value);
void needs_forget(unsigned device);  // what was set
void needs_close(void);

enum status needs_attribute(uint64_t function, int attribute, int *value);

// As occupancy_blocks(), with the memory that the kernel itself declares.
enum status needs_blocks(uint64_t function, const void *stub, int block_threads, uint64_t shared_bytes, int *blocks);
