// What an object needs, as the dynamic loader will read it.
#pragma once

#include <link.h>

// Let an object need one library more, which the loader opens and starts before it, as if the linker had been told so.
// The path has to stay. Return 0 where there is no memory for it.
int needs_add(struct link_map *map, const char *path);
