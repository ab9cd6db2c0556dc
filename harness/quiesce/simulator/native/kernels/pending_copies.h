// Asynchronous copies to shared memory (`cp.async`) for which the thread that began them has not waited yet. They are
// done at once here, and on a device at any time up to the wait.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pending_copy {
    uint32_t thread, site;
    uint32_t offset, bytes;  // in shared memory; multiples of 4 (PTX ISA, "cp.async")
};

void pending_copies_drop(void);  // another block runs

// False: there is no room, and nobody will hear of it.
bool pending_copies_add(const struct pending_copy *copy);

bool pending_copies_wait(void);  // there are some

// A thread ends a group of copies; and takes those that a wait for all but the last groups ends. False: there is none.
void pending_copies_commit(uint32_t thread);
bool pending_copies_take(uint32_t thread, uint32_t groups_left, struct pending_copy *taken);

// One that writes any of some bytes; NULL: there is none.
const struct pending_copy *pending_copies_find(uint64_t offset, uint64_t bytes);
