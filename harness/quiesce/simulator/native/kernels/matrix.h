// Matrices that the threads of a warp hold together (PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions").
// quiesce.simulator.kernels.translation.instructions.matrices makes the calls.
#pragma once

#include "kernels/abi.h"

// What all 32 threads of a warp have come to: each `value` is the address of its registers. Their results go there.
void matrix_run(struct kernel_thread *const threads[WARP_THREADS]);
