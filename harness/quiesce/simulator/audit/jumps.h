// Jumps at the entries of functions that no thread runs yet.
#pragma once

#include "embedded.h"
#include "object.h"

// Write a jump to the target of each function at its entry. The pages are writable meanwhile, and no code then; never
// both. Return what the system refused, with all entries as they were, or NULL.
const char *jumps_write(const object *into, const embedded_functions *found, const ElfW(Addr) *targets,
                        const char *path);

// Write a jump to a target that lies near at one entry, whose first bytes are those that are expected. Return what
// stands against it, with the entry as it was, or NULL.
const char *jumps_write_near(const object *into, ElfW(Addr) entry, ElfW(Addr) target, const char *path);
