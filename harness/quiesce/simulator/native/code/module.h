// Modules and the functions in them: loaded, named, and unloaded.
//
// A function is found by name where the image can be looked through (an ELF file, PTX text); in a compressed one, or a
// bundle, every name is taken for one of it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/stream.h"

struct dim3 {
    unsigned x, y, z;
};

// Fails where the device has no room for its variables (variable.h).
enum status module_load(const void *image, uint64_t *handle);
enum status module_load_file(const char *path, uint64_t *handle);
enum status module_unload(uint64_t handle);

// The handle of a function, which is dead once its module was unloaded.
enum status module_function(uint64_t handle, const char *name, uint64_t *function);
// That of the client's own kernel, by the address of its stub (registration.h). INVALID_DEVICE_FUNCTION: there is none.
enum status module_function_of_stub(const void *stub, uint64_t *function);
bool module_has_function(uint64_t function);

// A variable (variable.h) on the module's device, or (`of_library`) on the current one. Where the image does not tell
// of it, `function` fails by name.
enum status module_variable(uint64_t handle, bool of_library, const char *name, uint64_t *address,
                            uint64_t *size_bytes, const char *function);

// What it was compiled for, by its image (image.h), and what it needs, which is not known: the figures of one that
// needs nothing but threads. The numbers of the attributes are those of both vendors (CUfunction_attribute,
// hipFunction_attribute).
enum status module_attribute(uint64_t function, int attribute, int *value);

// Where a function comes from. False: it is none of a module that is loaded.
struct source;
bool module_source(uint64_t function, struct source *source);

// How many blocks fit on a multiprocessor, by threads and shared memory, and how many then fit on the device.
enum status occupancy_blocks(int block_threads, uint64_t shared_bytes, int *blocks);
uint64_t occupancy_whole(int blocks);

// The block of most threads, up to a limit (0: none), and the grid that fills the device with such blocks.
enum status occupancy_size(uint64_t shared_bytes, int limit, int *grid, int *block);

void modules_close(void);
