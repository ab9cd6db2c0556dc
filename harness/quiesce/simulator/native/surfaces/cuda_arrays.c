// The front end that answers as libcuda: arrays, textures and surfaces. They are those of the runtime, whose
// descriptions are made from the driver's.

#include <string.h>

#define LIBCUDA
#include "surfaces/calls.h"

// -- formats ---------------------------------------------------------------------------------------------------------

enum format {  // CUarray_format
    UNSIGNED_INT8 = 0x01, UNSIGNED_INT16, UNSIGNED_INT32, SIGNED_INT8 = 0x08, SIGNED_INT16, SIGNED_INT32,
    HALF = 0x10, FLOAT = 0x20,
};

// False: it is none that arrays are made of here.
static bool read_format(unsigned format, unsigned channels, struct channel_format *read) {
    bool is_signed = format >= SIGNED_INT8 && format <= SIGNED_INT32;
    bool is_unsigned = format >= UNSIGNED_INT8 && format <= UNSIGNED_INT32;
    int bits = format == HALF ? 16 : 32;
    if (is_signed || is_unsigned) bits = 8 << (format - (is_signed ? SIGNED_INT8 : UNSIGNED_INT8));
    if (!is_signed && !is_unsigned && format != HALF && format != FLOAT) return false;
    if (channels != 1 && channels != 2 && channels != 4) return false;
    *read = (struct channel_format){.kind = is_signed ? TEXELS_SIGNED : is_unsigned ? TEXELS_UNSIGNED : TEXELS_FLOAT};
    for (unsigned i = 0; i < channels; i++) read->bits[i] = bits;
    return true;
}

static unsigned channels_of(const struct channel_format *format) {
    unsigned channels = 0;
    while (channels < 4 && format->bits[channels]) channels++;
    return channels;
}

static unsigned format_of(const struct channel_format *format) {
    int bits = format->bits[0];
    if (format->kind == TEXELS_FLOAT) return bits == 16 ? HALF : FLOAT;
    unsigned first = format->kind == TEXELS_SIGNED ? SIGNED_INT8 : UNSIGNED_INT8;
    return first + (bits == 8 ? 0 : bits == 16 ? 1 : 2);
}

// -- arrays ----------------------------------------------------------------------------------------------------------

struct flat {  // CUDA_ARRAY_DESCRIPTOR
    size_t width, height;
    unsigned format, channels;
};

struct deep {  // CUDA_ARRAY3D_DESCRIPTOR
    struct extent extent;
    unsigned format, channels, flags;
};

static int create(void **array, const struct deep *description, const char *function) {
    CALL(function);
    NEED_CONTEXT;
    struct channel_format format;
    uint64_t made;
    NEED(array && description, INVALID_VALUE);
    NEED(read_format(description->format, description->channels, &format), INVALID_VALUE);
    status = array_create(&format, description->extent, description->flags, &made);
    if (!status) *array = (void *)made;
    ANSWER(status);
}

EXPORT int cuArray3DCreate_v2(void **array, const struct deep *description) {
    return create(array, description, "cuArray3DCreate_v2");
}

EXPORT int cuArrayCreate_v2(void **array, const struct flat *description) {
    struct deep deep = {0};
    if (description) {
        deep.extent = (struct extent){description->width, description->height, 0};
        deep.format = description->format;
        deep.channels = description->channels;
    }
    return create(array, description ? &deep : NULL, "cuArrayCreate_v2");
}

static int describe(struct deep *description, void *handle, const char *function) {
    CALL(function);
    NEED_CONTEXT;
    const struct array *array = array_find((uint64_t)handle);
    NEED(array, INVALID_HANDLE);
    *description = (struct deep){array->extent, format_of(&array->format), channels_of(&array->format), array->flags};
    ANSWER(OK);
}

EXPORT int cuArray3DGetDescriptor_v2(struct deep *description, void *array) {
    struct deep deep = {0};
    int answer = describe(&deep, array, "cuArray3DGetDescriptor_v2");
    if (!answer && description) *description = deep;
    return answer || description ? answer : INVALID_VALUE;
}

EXPORT int cuArrayGetDescriptor_v2(struct flat *description, void *array) {
    struct deep deep = {0};
    int answer = describe(&deep, array, "cuArrayGetDescriptor_v2");
    if (!answer && description)
        *description = (struct flat){deep.extent.width, deep.extent.height, deep.format, deep.channels};
    return answer || description ? answer : INVALID_VALUE;
}

EXPORT int cuArrayDestroy(void *array) {
    CALL("cuArrayDestroy");
    NEED_CONTEXT;
    NEED(array, INVALID_HANDLE);
    ANSWER(array_free((uint64_t)array));
}

// -- textures and surfaces -------------------------------------------------------------------------------------------

struct resource {  // CUDA_RESOURCE_DESC
    enum { ARRAY, MIPMAPPED, LINEAR, PITCHED } kind;
    uint64_t named;
    unsigned format, channels;
    size_t sizes[3];
};

struct description {  // CUDA_TEXTURE_DESC
    int address[3], filter;
    unsigned flags, anisotropy;
    int level_filter;
    float level_bias, levels[2], border[4];
};

// cudaResourceDesc and cudaTextureDesc. What concerns levels means nothing here.
struct runtime_resource {
    int kind;
    uint64_t named;
    struct channel_format format;
    size_t sizes[3];
};
_Static_assert(sizeof(struct runtime_resource) == RESOURCE_BYTES, "a resource as the runtime has it");

struct runtime_description {
    int address[3], filter, read, srgb;
    float border[4];
    int normalized;
};

static enum status read_resource(const struct resource *resource, struct runtime_resource *read) {
    *read = (struct runtime_resource){.kind = resource->kind, .named = resource->named};
    if (resource->kind != LINEAR && resource->kind != PITCHED) return OK;
    memcpy(read->sizes, resource->sizes, (resource->kind == LINEAR ? 1 : 3) * sizeof *read->sizes);
    return read_format(resource->format, resource->channels, &read->format) ? OK : INVALID_VALUE;
}

static struct runtime_description read_description(const struct description *description) {
    enum { AS_INTEGERS = 0x01, NORMALIZED = 0x02, SRGB = 0x10 };
    struct runtime_description read = {
        .filter = description->filter,
        .read = !(description->flags & AS_INTEGERS),
        .srgb = !!(description->flags & SRGB),
        .normalized = !!(description->flags & NORMALIZED),
    };
    memcpy(read.address, description->address, sizeof read.address);
    memcpy(read.border, description->border, sizeof read.border);
    return read;
}

EXPORT int cuTexObjectCreate(uint64_t *object, const struct resource *resource, const struct description *description,
                             const void *view) {
    CALL("cuTexObjectCreate");
    NEED_CONTEXT;
    struct runtime_resource named;
    NEED(object && resource && description, INVALID_VALUE);
    status = read_resource(resource, &named);
    struct runtime_description read = read_description(description);
    if (!status) status = texture_create(&named, &read, sizeof read, view, object);
    ANSWER(status);
}

EXPORT int cuSurfObjectCreate(uint64_t *object, const struct resource *resource) {
    CALL("cuSurfObjectCreate");
    NEED_CONTEXT;
    struct runtime_resource named;
    NEED(object && resource && resource->kind == ARRAY, INVALID_VALUE);
    status = read_resource(resource, &named);
    if (!status) status = texture_create(&named, NULL, 0, NULL, object);
    ANSWER(status);
}

static int destroy(uint64_t object, const char *function) {
    CALL(function);
    NEED_CONTEXT;
    ANSWER(texture_destroy(object));
}

EXPORT int cuTexObjectDestroy(uint64_t object) { return destroy(object, "cuTexObjectDestroy"); }
EXPORT int cuSurfObjectDestroy(uint64_t object) { return destroy(object, "cuSurfObjectDestroy"); }
