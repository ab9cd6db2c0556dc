// Linking by the driver: recorded, not computed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "code/link_inputs.h"
#include "machine/status.h"

enum status link_create(uint64_t *handle);

// Adds what the client keeps no longer than the call. INVALID_VALUE once it is complete.
enum status link_add(uint64_t handle, int kind, const void *content, size_t bytes);
enum status link_add_file(uint64_t handle, int kind, const char *path);

// The image is the linker's: "it should be loaded before state is destroyed" (cuLinkComplete).
enum status link_complete(uint64_t handle, void **image, size_t *bytes);
enum status link_destroy(uint64_t handle);
