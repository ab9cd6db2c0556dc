// First values of variables that only the compiler can tell: addresses of variables and functions, numbers that have to
// be rounded.
#pragma once

#include <stdbool.h>

struct source;

// Writes the first value of a variable, which has memory on the device. False: it can't be told.
bool initial_write(const struct source *source, const char *variable, unsigned device);

void initials_close(void);
