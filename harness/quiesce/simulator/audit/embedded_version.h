// Which release of CUDA a runtime is of that was linked in statically.
#pragma once

#include "embedded.h"
#include "object.h"
#include "provided.h"

// Return it as CUDA writes it (12090 for 12.9), 0 where it is not known. The entries have to be as they were linked.
int embedded_version_of(const object *in, const embedded_functions *found);

// Tell the simulated runtime, which takes the first that it is told where the run leaves it the choice, and notes the
// object that the redirected runtime is in.
void embedded_version_choose(int version, const struct link_map *in, const provided *by);
