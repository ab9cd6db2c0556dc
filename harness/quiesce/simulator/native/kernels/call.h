// A launch with its arguments, which are copied when it is made ("the values pointed to … are copied": the caller may
// change them afterwards), and its run, when a stream comes to it (machine/upcalls.h).
#pragma once

#include <stdbool.h>

#include <stddef.h>

#include "kernels/kernel.h"

struct arguments {
    void **pointers;  // one to each value, or NULL and
    void **extra;     // a list that names one buffer with all values (cuLaunchKernel)
};

struct dimensions {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;  // beside what the kernel itself declares
    bool is_cooperative;
};

// Who makes a launch.
struct launcher {
    uint32_t stack;
    uint16_t function;
    uint64_t stream;   // its serial
    const char *test;  // of pytest, which runs; NULL: none
};

// NULL: no memory is left.
struct kernel_call *kernel_call_new(const struct kernel *kernel, const struct object *object,
                                    const struct dimensions *shape, const struct arguments *arguments,
                                    const struct launcher *launcher);
void kernel_call_keep(struct kernel_call *call);  // NULL: nothing computes
void kernel_call_drop(struct kernel_call *call);

// Its arguments as a client names them: places of values, in one piece of memory that is the caller's, or NULL.
void **kernel_call_show(const struct kernel_call *call);

// Calls `see` with each word of its arguments that may be an address.
void kernel_call_see_arguments(const struct kernel_call *call, void (*see)(uint64_t address));

// Runs it. A kernel that does not come to its end breaks the context of its device. `number`: of its observation.
void kernel_call_run(const struct kernel_call *call, uint64_t number);
