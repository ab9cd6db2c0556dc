#include "code/link.h"

#include <stdlib.h>

#include "ledger/handle.h"
#include "machine/device.h"
#include "machine/settings.h"

struct linker {
    uint64_t serial;
    struct link_inputs inputs;
    char *image;  // NULL: it is not complete
    size_t image_bytes;
};

static struct linker *find(uint64_t handle) { return handle_find(THING_LINKER, handle); }

enum status link_create(uint64_t *handle) {
    struct linker *linker = calloc(1, sizeof *linker);
    *handle = linker ? handle_make(THING_LINKER, linker, device_current(), &linker->serial, false) : 0;
    if (*handle) return OK;
    free(linker);
    return OUT_OF_MEMORY;
}

enum status link_destroy(uint64_t handle) {
    struct linker *linker = find(handle);
    if (!linker) return INVALID_HANDLE;
    handle_drop(handle);
    link_inputs_free(&linker->inputs);
    free(linker->image);
    free(linker);
    return OK;
}

static bool is_kind(int kind) {
    if (settings.flavour == FLAVOUR_HIP) return kind >= LINK_BITCODE && kind <= LINK_SPIRV;
    return kind >= LINK_CUBIN && kind <= LINK_NVVM;
}

enum status link_add(uint64_t handle, int kind, const void *content, size_t bytes) {
    struct linker *linker = find(handle);
    if (!linker) return INVALID_HANDLE;
    if (!content || !bytes || linker->image || !is_kind(kind)) return INVALID_VALUE;
    return link_inputs_add(&linker->inputs, kind, content, bytes);
}

enum status link_add_file(uint64_t handle, int kind, const char *path) {
    struct linker *linker = find(handle);
    if (!linker) return INVALID_HANDLE;
    if (!path || linker->image || !is_kind(kind)) return INVALID_VALUE;
    return link_inputs_add_file(&linker->inputs, kind, path);
}

enum status link_complete(uint64_t handle, void **image, size_t *bytes) {
    struct linker *linker = find(handle);
    if (!linker) return INVALID_HANDLE;
    enum status status = OK;
    if (!linker->image) status = link_inputs_write(&linker->inputs, &linker->image, &linker->image_bytes);
    if (status) return status;
    *image = linker->image;
    if (bytes) *bytes = linker->image_bytes;
    return OK;
}
