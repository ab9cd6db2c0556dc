// Which release of a library goes with the simulated version of the runtime.
#pragma once

#include "libraries/object.h"

struct releases {
    int major_factor, minor_factor;  // the number is made of the parts by these
    struct release {
        int parts[3];  // major, minor, patch
    } of_first, of_second, of_third;  // CUDA 11, 12, 13; ROCm 5, 6, 7
};

int release_as_number(const struct releases *releases);

// Calls: they work without a device, and need no object.
int release_number(const struct library *library, const struct releases *releases, int *version);
int release_part(const struct library *library, const struct releases *releases, int part, int *value);
