// A file as the dynamic loader has mapped it: nothing is relocated yet.
#pragma once

#include <link.h>

#include "image.h"

typedef struct {
    const struct link_map *map;
    ElfW(Addr) base;  // what is added to the addresses in the file
    int is_fixed;     // the file itself says where it lies
    int segment_count;
    Elf64_Phdr segments[SEGMENTS_MAX];
} object;

// Describe what is loaded from a file; 0 where the file at the path is another one by now.
int object_describe(object *of, const struct link_map *map, const char *path);

// Return where bytes lie that the file has at an address, or NULL where it has not that many there.
const void *object_at(const object *of, ElfW(Addr) address, size_t size_bytes);
