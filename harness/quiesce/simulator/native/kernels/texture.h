// Textures and surfaces as kernels use them. An object that does not exist, and texels in memory that may not be used,
// are wrong accesses (checks.h).
#pragma once

#include "kernels/abi.h"
#include "kernels/sampling.h"

// Called by kernels. `handle`: of an object, or the address of a variable that has one (a reference of a module). The
// last two numbers are those of the instruction and of the thread in its block.
void quiesce_kernel_texture(struct kernel_context *context, uint64_t handle, struct texel_area *area, uint32_t word,
                            uint32_t site, uint32_t thread);
void quiesce_kernel_surface(struct kernel_context *context, uint64_t handle, struct texel_area *area, uint32_t word,
                            uint32_t site, uint32_t thread);
void quiesce_kernel_texture_query(struct kernel_context *context, uint64_t handle, uint32_t *answer, uint32_t query,
                                  uint32_t site, uint32_t thread);
uint32_t quiesce_kernel_texture_kind(uint64_t handle);  // 1: a texture, 2: a surface, 0: neither

// -- for surface.c ---------------------------------------------------------------------------------------------------

// Who uses texels.
struct texel_user {
    struct texel_judge judge;
    struct kernel_context *context;
    uint32_t site, thread;
    bool is_gone;  // the memory of the object was freed, and is somebody else's
};

// The object, or NULL: there is none, which was observed. The user is what the texels are asked for by.
const struct texture *texture_use(struct texel_user *user, struct kernel_context *context, uint64_t handle,
                                  bool is_surface, uint32_t site, uint32_t thread);
