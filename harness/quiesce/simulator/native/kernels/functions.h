// The functions that compiled kernels call by name.
#pragma once

// NULL: there is none of that name, and a kernel that calls it can't be loaded.
void (*kernel_function_find(const char *name))(void);
