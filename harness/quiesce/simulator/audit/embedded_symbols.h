// The functions of a CUDA runtime by the symbol table of the file that it was linked into, where that was kept.
#pragma once

#include "embedded.h"
#include "memory.h"

typedef struct {
    const unsigned char *content;  // of the whole file
    size_t size_bytes;
} mapped_file;

int mapped_file_open(mapped_file *file, const char *path);
void mapped_file_close(mapped_file *file);

// Find them; 0 where the file has no such table, or no runtime by it. The names are in the mapped file.
int embedded_by_symbols(const mapped_file *file, embedded_functions *found);
