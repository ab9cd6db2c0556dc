// Programs that this process starts belong to the run, also those that get an emptied environment.
#pragma once

#include <link.h>

// Let the C library, which was just mapped, start programs by way of this module.
void execs_follow(struct link_map *c_library);
