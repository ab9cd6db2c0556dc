// What kernels write: printf and assert.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kernel_context;

// printf of device code: `arguments` is where its caller put them, each aligned to its own size. "Unlike the C-standard
// printf(), which returns the number of characters printed, CUDA's printf() returns the number of arguments parsed"
// (CUDA C++ Programming Guide, "Formatted Output").
int quiesce_kernel_print(struct kernel_context *context, const char *format, uint64_t arguments);

// Says which assertion failed, and in which thread of the block. The code ends the kernel by itself.
void quiesce_kernel_assert(struct kernel_context *context, const char *message, const char *file, uint32_t line,
                           const char *function, uint32_t thread);

void print_mute(bool is_muted);  // what is written from now on is not to be seen
void print_end(void);  // of a kernel: what it wrote is to be seen now
