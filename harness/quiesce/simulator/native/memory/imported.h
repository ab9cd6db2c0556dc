// Device memory of other processes of the run (CUDA Runtime API, "cudaIpcOpenMemHandle"; HIP's is the same): a block of
// this process, in a slot of the arena whose pages are those of the exporter's file.
#pragma once

#include <stdint.h>

#include "machine/status.h"
#include "memory/shared_table.h"

// "If the memory handle has already been opened by the current context, the reference count on the handle is
// incremented by 1 and the existing device pointer is returned." Who exports it can't open it: INVALID_CONTEXT.
enum status memory_import(const struct shared_handle *handle, uint64_t *address);

// Waits for the devices, as a free does: CUDA's document does not say so, but users have measured it
// (pytorch/tensorpipe#321).
enum status memory_end_import(uint64_t address);

void imported_reset(unsigned device);  // ends what lies on a device

void imported_look(void);  // learns which exporters have freed what is open here

// Where what was imported into a slot began: not where the slot does, where the exporter's block begins within a page.
uint64_t imported_start(uint64_t slot_start);

void imported_exit(void);  // the process ends: it has nothing open any more
void imported_close(void);
