// How many threads of the processor run the blocks of a launch: several only where its results, and what is found, are
// those of one.
#pragma once

#include "kernels/grid.h"

unsigned cores_for(const struct grid *grid);
