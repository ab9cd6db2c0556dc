// A relocatable object as the compiler writes it, brought into memory: one kernel, with the tables that describe it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernels/abi.h"

struct object {
    void *memory;  // NULL: nothing is loaded
    size_t bytes;
    struct kernel_info info;
    const struct kernel_parameter *parameters;
    const struct kernel_variable *variables;
    const struct kernel_site *sites;         // these are of an object that checks its accesses, else NULL
    const char *const *site_texts;           // the instruction of each
    const struct kernel_file *files;
    const struct kernel_array *arrays;
    run_block *block;    // of a kernel whose threads never wait, or
    run_thread *thread;  // of one whose threads do
    run_together *together;  // the same, all threads of a block at once; NULL: there is no such function
    const struct kernel_state *states;
    const int64_t *footprints;  // see footprints.h
    // The instruction of each that all threads of a warp have to come to; -2 less the instruction, where they need not;
    // -1: it is not known.
    const int32_t *state_sites;
};

// The instruction at which a thread of a state waits. NO_SITE: it is not known.
static inline uint32_t object_waits_at(const struct object *object, uint32_t state) {
    if (!state || !object->state_sites || !object->sites || object->state_sites[state - 1] == -1) return NO_SITE;
    int32_t site = object->state_sites[state - 1];
    return (uint32_t)(site < 0 ? -2 - site : site);
}

enum { OBJECT_REASON_BYTES = 256 };

// Loads the content of an object. False: it can't be, for the reason that is written.
bool object_load(struct object *object, const char *content, size_t bytes, char reason[OBJECT_REASON_BYTES]);
void object_unload(struct object *object);
