// What an object needs, as the dynamic loader will read it.
#pragma once

#include <link.h>
#include <stddef.h>

typedef struct {
    struct link_map *of;
    ElfW(Dyn) *own, *longer;  // the object's own dynamic section, and a copy that needs more
    size_t longer_bytes;
} needs;

// Let an object need one library more, which the loader opens and starts before it, as if the linker had been told so.
// The path has to stay until the end. Return 0 where there is no memory for it.
int needs_add(needs *more, struct link_map *map, const char *path);

// Let the object be as it was, once the loader has opened what it needs. Debuggers know an object by its section.
void needs_end(needs *more);
