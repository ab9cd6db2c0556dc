#include "memory/array.h"

#include <stdlib.h>

#include "ledger/ledger.h"
#include "machine/device.h"
#include "machine/forget.h"
#include "machine/hidden.h"
#include "memory/memory.h"
#include "memory/places.h"
#include "memory/refusal.h"

static struct array *arrays;

static size_t rows(struct extent extent) {
    return (extent.height ? extent.height : 1) * (extent.depth ? extent.depth : 1);
}

enum status array_create(const struct channel_format *format, struct extent extent, unsigned flags, uint64_t *handle) {
    size_t bits = 0;
    for (unsigned i = 0; i < 4; i++) {
        if (format->bits[i] < 0 || format->bits[i] > 64) return INVALID_VALUE;
        bits += (size_t)format->bits[i];
    }
    if (!bits || bits % 8 || !extent.width || extent.width > UINT32_MAX || extent.height > UINT32_MAX ||
        extent.depth > UINT16_MAX)
        return INVALID_VALUE;
    struct array *array = calloc(1, sizeof *array);
    if (!array) return OUT_OF_MEMORY;
    *array = (struct array){
        .next = arrays, .format = *format, .extent = extent, .flags = flags, .element_bytes = bits / 8};
    uint64_t size_bytes, address = 0;
    bool overflows = __builtin_mul_overflow(extent.width * array->element_bytes, rows(extent), &size_bytes);
    enum status status =
        overflows ? OUT_OF_MEMORY : memory_allocate(THING_DEVICE, device_current(), size_bytes, 0, &address);
    if (status) {
        free(array);
        return status;
    }
    array->hidden_address = HIDDEN(address);
    arrays = array;
    *handle = address;
    return OK;
}

const struct array *array_find(uint64_t handle) {
    const struct array *array = arrays;
    while (array && HIDDEN(array->hidden_address) != handle) array = array->next;
    return array;
}

enum status array_free(uint64_t handle) {
    if (!handle) return OK;  // "If devPtr is 0, no operation is performed" (cudaFreeArray)
    if (!array_find(handle)) {
        refuse_free(SEEN_FREED_FOREIGN, THING_DEVICE, handle);
        return INVALID_VALUE;
    }
    enum status status = memory_free(THING_DEVICE, THING_DEVICE, handle);
    if (status) return status;
    struct array **place = &arrays;  // looked for behind the free, which lets other threads go on
    while (HIDDEN((*place)->hidden_address) != handle) place = &(*place)->next;
    struct array *array = *place;
    *place = array->next;
    forget(array, sizeof *array);
    return OK;
}

enum status array_part(uint64_t handle, struct position at, struct extent bytes, struct plane *plane) {
    const struct array *array = array_find(handle);
    if (!array) return INVALID_HANDLE;
    size_t pitch = array->extent.width * array->element_bytes;
    size_t height = array->extent.height ? array->extent.height : 1;
    size_t depth = array->extent.depth ? array->extent.depth : 1;
    if (at.x > pitch || bytes.width > pitch - at.x) return INVALID_VALUE;
    if (at.y > height || bytes.height > height - at.y) return INVALID_VALUE;
    if (at.z > depth || bytes.depth > depth - at.z) return INVALID_VALUE;
    uint64_t start = HIDDEN(array->hidden_address) + (at.z * height + at.y) * pitch + at.x;
    *plane = (struct plane){start, pitch, pitch * height};
    return OK;
}

void arrays_close(void) {
    while (arrays) {
        struct array *next = arrays->next;
        free(arrays);
        arrays = next;
    }
}
