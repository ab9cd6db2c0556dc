// What several threads kept to themselves (beside.h), told as one thread would have.
#pragma once

#include <stdbool.h>

#include "kernels/wrong_access.h"

// Prepares so many threads. Returns how many there can be.
unsigned beside_open(unsigned count);

// Tells it all. `by_user`: the kernel was stopped anywhere.
void beside_tell(unsigned count, const struct checked_launch *launch, bool by_user);
