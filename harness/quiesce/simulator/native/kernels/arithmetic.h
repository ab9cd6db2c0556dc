// Functions that compiled kernels call by name (quiesce.kernels makes the calls). Each result is exact, so that a
// kernel gives the same bits on every processor, except for approximations, which PTX lets differ between devices.
#pragma once

// How a result that lies between two numbers is rounded. quiesce.kernels.translation.rounding has the same numbers.
enum kernel_rounding { ROUND_NEAREST_EVEN, ROUND_TO_ZERO, ROUND_DOWN, ROUND_UP, ROUND_NEAREST_AWAY };

// The function of a name. NULL: there is none, and a kernel that calls it can't be loaded.
void (*kernel_arithmetic_find(const char *name))(void);
