#include "memory/texture.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/handle.h"
#include "machine/device.h"
#include "machine/forget.h"
#include "machine/hidden.h"
#include "memory/places.h"

// cudaResourceDesc, hipResourceDesc.
struct resource {
    enum { ARRAY, MIPMAPPED, LINEAR, PITCHED } kind;
    uint64_t named;
    struct channel_format format;
    size_t sizes[3];  // bytes; or width, height and pitch
};
_Static_assert(sizeof(struct resource) == RESOURCE_BYTES, "a resource as clients know it");

// The beginning of cudaTextureDesc, hipTextureDesc.
struct description {
    int address[3], filter, read, srgb;
    float border[4];
    int normalized;
};

// cudaResourceViewDesc, hipResourceViewDesc: another format for texels of the same size, and a part of the layers.
struct view {
    int format;
    size_t width, height, depth;
    unsigned levels[2], layers[2];  // the first and the last
};

// -- where texels lie ------------------------------------------------------------------------------------------------

// Channels are 1, 2 or 4 of one size. Formats of other kinds, such as compressed ones, have no texels for kernels.
static enum status describe_format(const struct channel_format *format, struct image *image) {
    int bits = format->bits[0];
    unsigned channels = 0;
    while (channels < 4 && format->bits[channels]) channels++;
    for (unsigned i = 0; i < 4; i++)
        if (format->bits[i] != (i < channels ? bits : 0)) return INVALID_VALUE;
    bool is_known = format->kind >= TEXELS_SIGNED && format->kind <= TEXELS_FLOAT;
    if (!is_known || channels == 3 || (bits != 8 && bits != 16 && bits != 32)) return INVALID_VALUE;
    if (format->kind == TEXELS_FLOAT && bits == 8) return INVALID_VALUE;
    image->channels = channels;
    image->channel_bytes = (unsigned)bits / 8;
    image->kind = (unsigned)format->kind;
    return OK;
}

static uint32_t at_least_one(size_t size) { return size ? (uint32_t)size : 1; }

static enum status describe_array(const struct array *array, struct image *image) {
    image->width = (uint32_t)array->extent.width;
    image->height = at_least_one(array->extent.height);
    image->depth = at_least_one(array->extent.depth);
    image->pitch = image->width * array->element_bytes;
    image->slice = image->pitch * image->height;
    if (array->flags & (ARRAY_IS_LAYERED | ARRAY_IS_CUBE)) {
        image->layers = image->depth;
        image->depth = 1;
    }
    return describe_format(&array->format, image);
}

static enum status describe_linear(const struct resource *resource, struct image *image) {
    enum status status = memory_check(resource->named, 1);
    if (!status) status = describe_format(&resource->format, image);
    if (status) return status;
    size_t element_bytes = image->channels * image->channel_bytes;
    image->height = image->depth = 1;
    image->is_linear = resource->kind == LINEAR;
    if (image->is_linear) {
        image->width = (uint32_t)(resource->sizes[0] / element_bytes);
        image->pitch = image->slice = resource->sizes[0];
        return OK;
    }
    image->width = (uint32_t)resource->sizes[0];
    image->height = at_least_one(resource->sizes[1]);
    image->pitch = resource->sizes[2];
    image->slice = image->pitch * image->height;
    return image->pitch < image->width * element_bytes ? INVALID_VALUE : OK;
}

static enum status describe(const struct resource *resource, struct image *image) {
    const struct array *array = resource->kind == ARRAY ? array_find(resource->named) : NULL;
    *image = (struct image){.hidden_address = HIDDEN(resource->named)};
    if (resource->kind == ARRAY && !array) return INVALID_HANDLE;
    if (resource->kind != ARRAY && resource->kind != LINEAR && resource->kind != PITCHED)
        return INVALID_VALUE;  // no mipmapped array can have been made
    enum status status = array ? describe_array(array, image) : describe_linear(resource, image);
    uint32_t live = memory_live_at(resource->named);
    image->memory = live ? ledger_live(live)->serial : 0;
    return status;
}

// Formats of views come by three, with 1, 2 and 4 channels; those after the last of these are compressed.
static enum status look_through(const struct view *view, struct image *image) {
    static const struct {
        int bits, kind;
    } FORMATS[] = {{8, TEXELS_UNSIGNED},  {8, TEXELS_SIGNED},  {16, TEXELS_UNSIGNED}, {16, TEXELS_SIGNED},
                   {32, TEXELS_UNSIGNED}, {32, TEXELS_SIGNED}, {16, TEXELS_FLOAT},    {32, TEXELS_FLOAT}};
    enum { NONE, FIRST };
    unsigned bytes = image->channels * image->channel_bytes, number = (unsigned)view->format - FIRST;
    if (view->format != NONE) {
        if (number / 3 >= sizeof FORMATS / sizeof *FORMATS) return INVALID_VALUE;
        image->channels = 1u << number % 3;
        image->channel_bytes = (unsigned)FORMATS[number / 3].bits / 8;
        image->kind = (unsigned)FORMATS[number / 3].kind;
    }
    if (image->channels * image->channel_bytes != bytes || view->levels[0]) return INVALID_VALUE;
    if (!image->layers) return OK;
    if (view->layers[0] > view->layers[1] || view->layers[1] >= image->layers) return INVALID_VALUE;
    image->hidden_address = HIDDEN(HIDDEN(image->hidden_address) + view->layers[0] * image->slice);
    image->layers = view->layers[1] - view->layers[0] + 1;
    return OK;
}

static struct sampler read_sampler(const struct description *description) {
    struct sampler sampler = {
        .filters = description->filter == 1,
        .scales = description->read == 1,
        .is_srgb = description->srgb,
        .normalized = description->normalized,
    };
    for (unsigned i = 0; i < 3; i++) {
        int mode = description->address[i];
        bool repeats = mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR;
        // "cudaAddressModeWrap and cudaAddressModeMirror are only supported for normalized texture coordinates"
        bool is_known = mode == ADDRESS_BORDER || (repeats && description->normalized);
        sampler.address[i] = is_known ? (unsigned)mode : ADDRESS_CLAMP;
    }
    memcpy(sampler.border, description->border, sizeof sampler.border);
    return sampler;
}

// -- objects ---------------------------------------------------------------------------------------------------------

enum status texture_create(const void *resource, const void *description, size_t description_bytes, const void *view,
                           uint64_t *handle) {
    struct resource named;
    struct image image;
    memcpy(&named, resource, sizeof named);
    enum status status = describe(&named, &image);
    if (!status && view) status = look_through(view, &image);
    if (status) return status;
    struct texture *texture = calloc(1, sizeof *texture);
    if (!texture) return OUT_OF_MEMORY;
    texture->image = image;
    texture->is_surface = !description;
    memcpy(texture->resource, resource, RESOURCE_BYTES);
    if (description) {
        struct description read;
        memcpy(texture->description, description, description_bytes);
        memcpy(&read, texture->description, sizeof read);
        texture->sampler = read_sampler(&read);
    }
    *handle = handle_make(THING_TEXTURE, texture, device_current(), &texture->serial, false);
    if (*handle) return OK;
    free(texture);
    return OUT_OF_MEMORY;
}

enum status texture_destroy(uint64_t handle) {
    struct texture *texture = handle_find(THING_TEXTURE, handle);
    if (!texture) return INVALID_VALUE;
    handle_drop(handle);
    forget(texture, sizeof *texture);
    return OK;
}

const struct texture *texture_find(uint64_t handle) { return handle_find(THING_TEXTURE, handle); }

const struct texture *texture_of_kernel(uint64_t handle) {
    return handle_live_at(handle) ? handle_find(THING_TEXTURE, handle) : NULL;
}
