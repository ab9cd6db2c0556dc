// Kernels that are ready to run: compiled, loaded, and with the addresses of their variables.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "code/source.h"
#include "kernels/object.h"
#include "kernels/request.h"

struct kernel {
    struct kernel *next;
    uint64_t key;
    uint64_t identity;  // of the PTX
    unsigned device;
    char *name;
    struct object object;     // without memory: it can't be run
    struct object backwards;  // the same, whose threads run from the last to the first; without memory: there is none
    bool is_turned;           // whether that one was asked for
    struct object rows;       // the same for rows of threads, which took longer to compile; without memory: as above
    uint64_t threads;         // that were launched, and how often they went on after a barrier
    bool is_asked_for_rows;   // whether that one was
    unsigned runs;            // of several blocks, as far as they are looked at
    char *refusal;            // why it can't be run; NULL: it can
    bool is_told;             // that it can't
    bool was_long;            // its last launch that several threads of the processor may run
    bool is_told_alone;       // why its blocks ran one after another
};

// Compiles and loads what a source names. Returns whether it can be run; else the reason is written.
bool kernel_load(struct object *object, const struct source *source, unsigned device, enum object_kind kind,
                 char reason[OBJECT_REASON_BYTES]);

// The source of a function of a module, or (`stub`) of one of the client's own, and by what its kernel is known. A
// function of a library that the runtime loaded goes by either. False: nothing is known of it.
bool kernel_source(uint64_t function, const void *stub, uint64_t *key, struct source *source);

// The kernel of a source on a device; `key` is what the client names it by. NULL: it can't be run, which was said.
const struct kernel *kernel_find(uint64_t key, const struct source *source, unsigned device);

// What it states of itself, of one that is asked about and need not be launched. NULL: nothing, and nothing is said.
const struct kernel_info *kernel_info(uint64_t key, const struct source *source, unsigned device);

// Where launches run in several orders: asks for the object whose threads run backwards, if there can be one.
void kernel_turn(const struct kernel *kernel, const struct source *source);

// The object that launches of so many threads run: a long kernel is compiled for rows of threads once that is worth it.
const struct object *kernel_object(const struct kernel *kernel, const struct source *source, uint64_t threads);

// Counts how often threads of a launch that ended went on after a barrier: that is work as well.
void kernel_count_turns(const struct kernel *kernel, uint64_t turns);

// Whether a run of it is one of the first, which are looked at for races of its blocks. Each call counts one.
bool kernel_is_new(const struct kernel *kernel);

// Whether it is still to be said why its blocks run one after another. From then on it was.
bool kernel_tells_alone(const struct kernel *kernel);

void kernel_keep_length(const struct kernel *kernel, bool was_long);

void kernels_close(void);
