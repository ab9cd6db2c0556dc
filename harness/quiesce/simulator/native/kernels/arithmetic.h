// Functions that compiled kernels call by name (kernels makes the calls). Each result is exact, so that a
// kernel gives the same bits on every processor, except for approximations, which PTX lets differ between devices.
#pragma once

#include <stdint.h>

// The function of a name. NULL: there is none, and a kernel that calls it can't be loaded.
void (*kernel_arithmetic_find(const char *name))(void);

uint64_t kernel_clock(void);  // what the next question about a clock is answered with, nearly

double kernel_fused(double a, double b, double c);  // a * b + c, rounded once
