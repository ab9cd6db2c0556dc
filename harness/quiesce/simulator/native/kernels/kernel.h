// Kernels that are ready to run: compiled, loaded, and with the addresses of their variables.
#pragma once

#include <stdint.h>

#include "code/source.h"
#include "kernels/object.h"

struct kernel {
    struct kernel *next;
    uint64_t key;
    uint64_t identity;  // of the PTX
    unsigned device;
    char *name;
    struct object object;  // without memory: it can't be run
};

// The kernel of a source on a device; `key` is what the client names it by. NULL: it can't be run, which was said.
const struct kernel *kernel_find(uint64_t key, const struct source *source, unsigned device);

void kernels_close(void);
