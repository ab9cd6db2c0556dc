#include "order/array_copy.h"

#include "order/transfer.h"

static enum status find_plane(const void *array, struct position at, const struct pitched *linear, struct extent bytes,
                              size_t element_bytes, struct plane *plane) {
    if (array) {
        at.x *= element_bytes;
        return array_part((uint64_t)array, at, bytes, plane);
    }
    if (!linear->address || at.x + bytes.width > linear->pitch) return INVALID_VALUE;
    uint64_t slice = linear->pitch * linear->height;
    uint64_t start = (uint64_t)linear->address + at.z * slice + at.y * linear->pitch + at.x;
    *plane = (struct plane){start, linear->pitch, slice};
    return bytes.depth > 1 && at.y + bytes.height > linear->height ? INVALID_VALUE : OK;
}

enum status array_copy(struct stream *stream, const struct copy_3d *copy, bool asynchronous) {
    const struct array *from = array_find((uint64_t)copy->from_array), *to = array_find((uint64_t)copy->to_array);
    if ((copy->from_array && !from) || (copy->to_array && !to)) return INVALID_HANDLE;
    if (from && to && from->element_bytes != to->element_bytes) return INVALID_VALUE;
    // "If no CUDA array is participating in the copy then the extents are defined in elements of unsigned char."
    size_t element_bytes = from ? from->element_bytes : to ? to->element_bytes : 1;
    struct extent bytes = {copy->extent.width * element_bytes, copy->extent.height, copy->extent.depth};
    struct plane source, target;
    enum status status = find_plane(copy->from_array, copy->from_at, &copy->from, bytes, element_bytes, &source);
    if (!status) status = find_plane(copy->to_array, copy->to_at, &copy->to, bytes, element_bytes, &target);
    for (size_t z = 0; z < bytes.depth && !status; z++) {
        struct shape shape = {target.pitch, source.pitch, bytes.width, bytes.height};
        status = transfer_copy(stream, target.address + z * target.slice, source.address + z * source.slice, shape,
                               asynchronous);
    }
    return status;
}
