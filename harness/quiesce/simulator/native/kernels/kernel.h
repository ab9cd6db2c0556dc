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
    struct object tuned;   // the same for a kernel that is launched often; without memory: there is none
    uint64_t threads;      // that were launched so far
};

// Compiles and loads what a source names. Returns whether it can be run; else the reason is written.
bool kernel_load(struct object *object, const struct source *source, unsigned device, bool tuned,
                 char reason[OBJECT_REASON_BYTES]);

// The kernel of a source on a device; `key` is what the client names it by. NULL: it can't be run, which was said.
const struct kernel *kernel_find(uint64_t key, const struct source *source, unsigned device);

// What to run for a launch of so many threads. The kernel is compiled a second time after many of them: which launch
// that is depends on their numbers only, so that it is the same one in each run.
const struct object *kernel_object(const struct kernel *kernel, const struct source *source, uint64_t threads);

void kernels_close(void);
