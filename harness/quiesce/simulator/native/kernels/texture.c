#include "kernels/texture.h"

#include <string.h>

#include "kernels/checks.h"
#include "kernels/touched.h"
#include "kernels/watch.h"
#include "ledger/handle.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "memory/places.h"

// What is read where nothing may be read; what is written there is nobody's.
static char nobodys[64] __attribute__((aligned(64)));

static void see(const struct texel_user *user, enum seen seen, uint64_t address, unsigned bytes, bool writes) {
    struct wrong_access wrong = {.seen = seen,
                                 .address = address,
                                 .bytes = bytes,
                                 .writes = writes,
                                 .site = user->site,
                                 .thread = user->thread};
    memcpy(wrong.block, user->context->block_index, sizeof wrong.block);
    memcpy(wrong.threads, user->context->block, sizeof wrong.threads);
    if (user->context->checks) checks_see(&wrong);
    // without checks nobody is told: then it is an error, as it is on a device
    if (!user->context->checks || settings.faults_stop) watch_leave(ENDED_BY_ACCESS);
}

static void *place(const struct texel_judge *judge, uint64_t address, unsigned bytes, bool writes) {
    const struct texel_user *user = (const struct texel_user *)judge;
    if (user->is_gone) {
        see(user, SEEN_KERNEL_USED_FREED, address, bytes, writes);
        memset(nobodys, 0, sizeof nobodys);
        return nobodys;
    }
    if (!user->context->checks) return (void *)address;
    uint32_t access = bytes | (uint32_t)writes << 8;
    void *used = quiesce_kernel_check(user->context, address, access, user->site, user->thread, NULL);
    if (used == (void *)address) touched_use(address, bytes, writes ? TOUCH_WRITE : TOUCH_READ, user->site);
    return used;
}

// Another block may lie where the memory of an object lay.
static bool lost_its_memory(const struct image *image) {
    uint32_t live = image->memory ? memory_live_at(HIDDEN(image->hidden_address)) : 0;
    return live && ledger_live(live)->serial != image->memory;
}

static uint64_t handle_of(uint64_t number) {
    if (handle_covers(number) || !memory_live_at(number)) return number;
    uint64_t handle;
    memcpy(&handle, (const void *)number, sizeof handle);
    return handle;
}

const struct texture *texture_use(struct texel_user *user, struct kernel_context *context, uint64_t handle,
                                  bool is_surface, uint32_t site, uint32_t thread) {
    const struct texture *texture = texture_of_kernel(handle_of(handle));
    *user = (struct texel_user){{place}, context, site, thread, texture && lost_its_memory(&texture->image)};
    if (texture && texture->is_surface == is_surface) return texture;
    see(user, SEEN_KERNEL_NO_TEXTURE, handle, 8, false);
    return NULL;
}

void quiesce_kernel_texture(struct kernel_context *context, uint64_t handle, struct texel_area *area, uint32_t word,
                            uint32_t site, uint32_t thread) {
    struct texel_user user;
    const struct texture *texture = texture_use(&user, context, handle, false, site, thread);
    if (texture)
        texture_sample(&texture->image, &texture->sampler, word, area, &user.judge);
    else
        memset(&area->content, 0, sizeof area->content);
}

// -- questions -------------------------------------------------------------------------------------------------------

enum query {
    WIDTH, HEIGHT, DEPTH, CHANNEL_DATA_TYPE, CHANNEL_ORDER, ARRAY_SIZE, NORMALIZED_COORDINATES,
    UNNORMALIZED_COORDINATES, FILTER_MODE, ADDRESS_MODE, LEVELS = ADDRESS_MODE + 3, SAMPLES, MEMORY_LAYOUT,
};

// "their values match the OpenCL enums" (PTX ISA, "Channel Data Type and Channel Order Fields").
static uint32_t channel_data_type(const struct texture *texture) {
    enum { SNORM_INT8 = 0x10d0, UNORM_INT8 = 0x10d2, SIGNED_INT8 = 0x10d7, UNSIGNED_INT8 = 0x10da, HALF_FLOAT = 0x10dd,
           FLOAT = 0x10de };
    const struct image *image = &texture->image;
    unsigned size = image->channel_bytes == 4 ? 2 : image->channel_bytes - 1;  // 8, 16, 32 bits
    if (image->kind == TEXELS_FLOAT) return size == 2 ? FLOAT : HALF_FLOAT;
    if (texture->sampler.scales && size < 2) return (image->kind == TEXELS_SIGNED ? SNORM_INT8 : UNORM_INT8) + size;
    return (image->kind == TEXELS_SIGNED ? SIGNED_INT8 : UNSIGNED_INT8) + size;
}

static uint32_t channel_order(const struct image *image) {
    enum { R = 0x10b0, RG = 0x10b2, RGBA = 0x10b5 };
    return image->channels == 1 ? R : image->channels == 2 ? RG : RGBA;
}

static uint32_t answer_query(const struct texture *texture, uint32_t query) {
    const struct image *image = &texture->image;
    switch (query) {
        case WIDTH: return image->width;
        case HEIGHT: return image->height;
        case DEPTH: return image->depth;
        case CHANNEL_DATA_TYPE: return channel_data_type(texture);
        case CHANNEL_ORDER: return channel_order(image);
        case ARRAY_SIZE: return image->layers;
        case NORMALIZED_COORDINATES: return texture->sampler.normalized;
        case UNNORMALIZED_COORDINATES: return !texture->sampler.normalized;
        case FILTER_MODE: return texture->sampler.filters;
        case LEVELS:
        case SAMPLES: return 1;
        case MEMORY_LAYOUT: return !image->is_linear;
        default: return (uint32_t)texture->sampler.address[query - ADDRESS_MODE];
    }
}

void quiesce_kernel_texture_query(struct kernel_context *context, uint64_t handle, uint32_t *answer, uint32_t query,
                                  uint32_t site, uint32_t thread) {
    struct texel_user user;
    const struct texture *texture = texture_of_kernel(handle_of(handle));
    bool is_surface = texture && texture->is_surface;
    texture = texture_use(&user, context, handle, is_surface, site, thread);
    *answer = texture ? answer_query(texture, query) : 0;
}

uint32_t quiesce_kernel_texture_kind(uint64_t handle) {
    const struct texture *texture = texture_of_kernel(handle_of(handle));
    return texture ? 1 + texture->is_surface : 0;
}
