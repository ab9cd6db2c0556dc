// Device memory that other processes of the run may open (CUDA Runtime API, "cudaIpcGetMemHandle"; HIP's is the same).
//
// The pages in which a block lies become those of a file, in their place: nothing has to know that they are shared.
// Other blocks may lie in the first and the last page. The file is that of the arena's chunk, so that a page is in one
// file, wherever blocks begin.
#pragma once

#include <stdint.h>

#include "machine/status.h"
#include "memory/shared_table.h"

// A handle of a block, given its entry of the live table. Memory of cudaMalloc() alone has one: neither memory of
// pools, nor managed, mapped or imported memory.
enum status memory_export(uint32_t live, struct shared_handle *handle);

bool exported_can(void);  // whether the process has a folder in common with others

extern bool exported_any;

// A block is freed. "Calling cudaFree on an exported memory region before calling cudaIpcCloseMemHandle in the
// importing context will result in undefined behavior": that is observed.
void exported_end(uint32_t live);

// The path of the file in which the pages of a chunk lie that begins at an address of the exporter.
bool exported_path(char *path, uint64_t bytes, const char *stem, uint64_t chunk);
