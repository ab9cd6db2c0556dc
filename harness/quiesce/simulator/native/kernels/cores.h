// How many threads of the processor run the blocks of a launch: several only where its results, and what is found, are
// those of one.
#pragma once

#include "kernels/grid.h"
#include "kernels/kernel.h"

// Where a large launch has to stay on one, it is said once of its kernel.
unsigned cores_for(const struct kernel *kernel, const struct grid *grid);
