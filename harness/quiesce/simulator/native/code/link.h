// Linking by the driver: recorded, not computed. The image that comes out holds its inputs, so that as a module it has
// the functions and variables that they have; where one of them can't be looked through, neither can it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"

// Kinds of inputs, of both vendors (CUjitInputType, hipJitInputType).
enum link_input {
    LINK_CUBIN,
    LINK_PTX,
    LINK_FATBINARY,
    LINK_OBJECT,
    LINK_LIBRARY,
    LINK_NVVM,
    LINK_BITCODE = 100,
    LINK_SPIRV = 103,
};

enum status link_create(uint64_t *handle);

// Adds what the client keeps no longer than the call. INVALID_VALUE once it is complete.
enum status link_add(uint64_t handle, int kind, const void *content, size_t bytes);
enum status link_add_file(uint64_t handle, int kind, const char *path);

// The image is the linker's: "it should be loaded before state is destroyed" (cuLinkComplete).
enum status link_complete(uint64_t handle, void **image, size_t *bytes);
enum status link_destroy(uint64_t handle);
