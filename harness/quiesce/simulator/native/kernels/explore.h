// Runs a launch in several orders of its blocks and threads, each time with the memory that it began with, and sees
// whether it leaves the same bytes. The program gets those of the usual order.
#pragma once

#include "kernels/grid.h"
#include "kernels/kernel.h"

// Runs a launch; how it ended in the usual order is returned.
struct grid_end explore(const struct kernel *kernel, struct grid *grid);
