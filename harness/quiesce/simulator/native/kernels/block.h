// Runs the threads of one block whose threads wait for each other: warp by warp, each thread until it waits.
#pragma once

#include <stddef.h>

#include "kernels/abi.h"
#include "kernels/object.h"

// How much memory the threads of a block need.
size_t block_bytes(const struct object *object, const uint32_t block[3]);

// 0, or how it ended before its time, an enum kernel_end. `memory` is aligned to 64 bytes.
int block_run(const struct object *object, struct kernel_context *context, char *memory);
