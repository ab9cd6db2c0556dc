// nvJitLink, as clients load it where kernels run: what is linked holds the PTX of its inputs. Names, statuses and
// kinds are those of nvJitLink.h of CUDA 12.9 and 13.5; its inline functions call names with the release behind.
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/image.h"
#include "code/link_inputs.h"
#include "machine/export.h"
#include "machine/settings.h"

enum { SUCCESS, MISSING_ARCHITECTURE = 2, INVALID_INPUT, PTX_COMPILE, NVVM_COMPILE, INTERNAL, UNRECOGNIZED_INPUT = 8,
       FINALIZE, NULL_INPUT };
enum { KIND_CUBIN = 1, KIND_PTX, KIND_LTO, KIND_FATBIN, KIND_OBJECT, KIND_LIBRARY, KIND_INDEX, KIND_ANY = 10 };

struct linkage {
    struct link_inputs inputs;
    char *image;
    size_t image_bytes;
    char *errors;
};

static int fail(struct linkage *linkage, int status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    free(linkage->errors);
    if (vasprintf(&linkage->errors, format, values) < 0) linkage->errors = NULL;
    va_end(values);
    fprintf(stderr, "quiesce: nvJitLink: %s\n", linkage->errors ? linkage->errors : "");
    return status;
}

static int create(void **handle, uint32_t count, const char **options) {
    bool has_architecture = false;
    for (uint32_t i = 0; options && i < count; i++) has_architecture |= options[i] && !strncmp(options[i], "-arch=", 6);
    if (!handle) return NULL_INPUT;
    *handle = has_architecture ? calloc(1, sizeof(struct linkage)) : NULL;
    return !has_architecture ? MISSING_ARCHITECTURE : *handle ? SUCCESS : INTERNAL;
}

static int destroy(void **handle) {
    struct linkage *linkage = handle ? *handle : NULL;
    if (!linkage) return NULL_INPUT;
    link_inputs_free(&linkage->inputs);
    free(linkage->image);
    free(linkage->errors);
    free(linkage);
    *handle = NULL;
    return SUCCESS;
}

// What an input is, as link_inputs.h calls it; -1: nothing that can be linked here. NVRTC's LTO-IR is PTX here.
static int kind_of(int kind, const char *content, size_t bytes) {
    uint32_t magic;
    bool is_text = bytes && image_length(content, bytes) && *content != 0x7f;
    if (kind == KIND_CUBIN) return LINK_CUBIN;
    if (kind == KIND_PTX || (is_text && (kind == KIND_LTO || kind == KIND_ANY))) return LINK_PTX;
    if (kind == KIND_FATBIN) return LINK_FATBINARY;
    if (kind == KIND_OBJECT) return LINK_OBJECT;
    if (kind == KIND_LIBRARY) return LINK_LIBRARY;
    if (kind != KIND_ANY || bytes < IMAGE_HEADER_BYTES) return -1;
    memcpy(&magic, content, sizeof magic);
    if (magic == 0xba55ed50u) return LINK_FATBINARY;
    if (!strncmp(content, "!<arch>\n", 8)) return LINK_LIBRARY;
    return !strncmp(content, "\177ELF", 4) ? LINK_OBJECT : -1;
}

static int add(struct linkage *linkage, int kind, const char *content, size_t bytes, const char *name) {
    if (!linkage || !content || !bytes) return NULL_INPUT;
    char *readable = calloc(1, bytes + IMAGE_HEADER_BYTES);
    if (!readable) return INTERNAL;
    memcpy(readable, content, bytes);
    int as = kind_of(kind, readable, bytes);
    enum status status = as < 0 ? INVALID_IMAGE : link_inputs_add(&linkage->inputs, as, content, bytes);
    free(readable);
    if (!name) name = "an input";
    if (as < 0)
        return fail(linkage, kind == KIND_LTO ? NVVM_COMPILE : UNRECOGNIZED_INPUT,
                    kind == KIND_LTO ? "%s is LTO-IR, which quiesce can't execute; compile it to PTX" :
                                       "%s has no PTX, which quiesce needs", name);
    if (status == INVALID_PTX) return fail(linkage, PTX_COMPILE, "%s is no PTX", name);
    return status ? fail(linkage, INVALID_INPUT, "%s can't be linked", name) : SUCCESS;
}

static int add_file(struct linkage *linkage, int kind, const char *path) {
    char *content;
    size_t bytes;
    if (!linkage || !path) return NULL_INPUT;
    if (image_from_file(path, &content, &bytes)) return fail(linkage, INVALID_INPUT, "%s can't be read", path);
    int status = add(linkage, kind, content, bytes, path);
    free(content);
    return status;
}

static int complete(struct linkage *linkage) {
    if (!linkage) return NULL_INPUT;
    if (linkage->image) return SUCCESS;
    if (!linkage->inputs.count) return fail(linkage, FINALIZE, "nothing was linked that has PTX");
    return link_inputs_write(&linkage->inputs, &linkage->image, &linkage->image_bytes) ? INTERNAL : SUCCESS;
}

static int size_of_cubin(const struct linkage *linkage, size_t *bytes) {
    if (!linkage || !bytes) return NULL_INPUT;
    *bytes = linkage->image_bytes;
    return linkage->image ? SUCCESS : INTERNAL;
}

static int get_cubin(const struct linkage *linkage, void *place) {
    if (!linkage || !place) return NULL_INPUT;
    if (!linkage->image) return INTERNAL;
    memcpy(place, linkage->image, linkage->image_bytes);
    return SUCCESS;
}

// The texts one after another, and a NUL; how long that is.
static size_t write_ptx(const struct linkage *linkage, char *place) {
    size_t bytes = 1;
    for (unsigned i = 0; i < linkage->inputs.count; i++) {
        const struct link_piece *piece = &linkage->inputs.pieces[i];
        size_t length = strnlen(piece->content, piece->bytes);
        if (!strncmp(piece->content, "\177ELF", 4)) continue;
        if (place) place = memcpy(place, piece->content, length) + length;
        if (place) *place++ = '\n';
        bytes += length + 1;
    }
    if (place) *place = 0;
    return bytes;
}

static int size_of_ptx(const struct linkage *linkage, size_t *bytes) {
    if (!linkage || !bytes) return NULL_INPUT;
    *bytes = write_ptx(linkage, NULL);
    return linkage->image ? SUCCESS : INTERNAL;
}

static int get_ptx(const struct linkage *linkage, char *place) {
    if (!linkage || !place) return NULL_INPUT;
    if (!linkage->image) return INTERNAL;
    write_ptx(linkage, place);
    return SUCCESS;
}

static int size_of_errors(const struct linkage *linkage, size_t *bytes) {
    if (!linkage || !bytes) return NULL_INPUT;
    *bytes = linkage->errors ? strlen(linkage->errors) + 1 : 0;
    return SUCCESS;
}

static int get_errors(const struct linkage *linkage, char *place) {
    if (!linkage || !place) return NULL_INPUT;
    if (linkage->errors) strcpy(place, linkage->errors);
    return SUCCESS;
}

static int no_size(const struct linkage *linkage, size_t *bytes) {
    if (!linkage || !bytes) return NULL_INPUT;
    *bytes = 0;
    return SUCCESS;
}

static int no_text(const struct linkage *linkage, const char *place) {
    return linkage && place ? SUCCESS : NULL_INPUT;
}

// -- names -----------------------------------------------------------------------------------------------------------

EXPORT int simulated_nvJitLinkVersion(unsigned *major, unsigned *minor) {
    if (!major || !minor) return NULL_INPUT;
    *major = settings.version;
    *minor = *major == 12 ? 9 : 0;
    return SUCCESS;
}

#define NAMED(before, behind) \
    EXPORT int simulated_##before##nvJitLinkCreate##behind(void **handle, uint32_t count, const char **options) { \
        return create(handle, count, options); \
    } \
    EXPORT int simulated_##before##nvJitLinkDestroy##behind(void **handle) { return destroy(handle); } \
    EXPORT int simulated_##before##nvJitLinkAddData##behind(void *handle, int kind, const void *content, size_t bytes, \
                                                            const char *name) { \
        return add(handle, kind, content, bytes, name); \
    } \
    EXPORT int simulated_##before##nvJitLinkAddFile##behind(void *handle, int kind, const char *path) { \
        return add_file(handle, kind, path); \
    } \
    EXPORT int simulated_##before##nvJitLinkComplete##behind(void *handle) { return complete(handle); } \
    EXPORT int simulated_##before##nvJitLinkGetLinkedCubinSize##behind(void *handle, size_t *bytes) { \
        return size_of_cubin(handle, bytes); \
    } \
    EXPORT int simulated_##before##nvJitLinkGetLinkedCubin##behind(void *handle, void *place) { \
        return get_cubin(handle, place); \
    } \
    EXPORT int simulated_##before##nvJitLinkGetLinkedPtxSize##behind(void *handle, size_t *bytes) { \
        return size_of_ptx(handle, bytes); \
    } \
    EXPORT int simulated_##before##nvJitLinkGetLinkedPtx##behind(void *handle, char *place) { \
        return get_ptx(handle, place); \
    } \
    EXPORT int simulated_##before##nvJitLinkGetErrorLogSize##behind(void *handle, size_t *bytes) { \
        return size_of_errors(handle, bytes); \
    } \
    EXPORT int simulated_##before##nvJitLinkGetErrorLog##behind(void *handle, char *place) { \
        return get_errors(handle, place); \
    } \
    EXPORT int simulated_##before##nvJitLinkGetInfoLogSize##behind(void *handle, size_t *bytes) { \
        return no_size(handle, bytes); \
    } \
    EXPORT int simulated_##before##nvJitLinkGetInfoLog##behind(void *handle, char *place) { \
        return no_text(handle, place); \
    }

NAMED(, )
NAMED(__, _12_0)
NAMED(__, _12_1)
NAMED(__, _12_2)
NAMED(__, _12_3)
NAMED(__, _12_4)
NAMED(__, _12_5)
NAMED(__, _12_6)
NAMED(__, _12_7)
NAMED(__, _12_8)
NAMED(__, _12_9)
NAMED(__, _13_0)
NAMED(__, _13_1)
NAMED(__, _13_2)
NAMED(__, _13_3)
NAMED(__, _13_4)
NAMED(__, _13_5)
