// The front end that answers as libcuda: copies of rows and planes, also of arrays, and hints about managed memory.

#define LIBCUDA
#include "surfaces/calls.h"
#include "surfaces/cubes.h"

// -- copies ----------------------------------------------------------------------------------------------------------

struct side_2d {  // one half of CUDA_MEMCPY2D
    size_t x_bytes, y;
    int type;
    uint64_t host, device, array;
    size_t pitch;
};

struct copy_2d {  // CUDA_MEMCPY2D
    struct side_2d from, to;
    size_t width, height;
};

static bool is_known(int type) { return type >= HOST && type <= UNIFIED; }

static bool is_on_device(const struct side_3d *side) { return side->type == DEVICE || side->type == ARRAY; }

static uint64_t base_of(const struct side_3d *side) {
    return side->type == HOST ? side->host : side->type == ARRAY ? side->array : side->device;
}

// Where a plane of one side begins, and what lies between its rows: a pitch of 0 stands for rows that touch.
static enum status find_plane(const struct side_3d *side, struct extent bytes, struct plane *plane) {
    struct position at = {side->x_bytes, side->y, side->z};
    if (side->type == ARRAY) return array_part(side->array, at, bytes, plane);
    uint64_t pitch = side->pitch ? side->pitch : bytes.width;
    uint64_t slice = pitch * (side->height ? side->height : bytes.height);
    *plane = (struct plane){base_of(side) + at.z * slice + at.y * pitch + at.x, pitch, slice};
    return pitch < bytes.width ? INVALID_VALUE : OK;
}

enum status cube_copy(const struct cube *copy, struct stream *stream, bool asynchronous) {
    enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };
    const struct side_3d *from = &copy->from, *to = &copy->to;
    if (!is_known(from->type) || !is_known(to->type) || !base_of(from) || !base_of(to)) return INVALID_VALUE;
    struct extent bytes = {copy->width, copy->height, copy->depth};
    struct plane source, target;
    enum status status = find_plane(from, bytes, &source);
    if (!status) status = find_plane(to, bytes, &target);
    if (status) return status;
    int kind = (is_on_device(from) ? DEVICE_TO_HOST : HOST_TO_HOST) + (is_on_device(to) ? HOST_TO_DEVICE : 0);
    if (from->type == UNIFIED || to->type == UNIFIED) kind = BY_ADDRESS;
    struct shape shape = {target.pitch, source.pitch, copy->width, copy->height};
    for (size_t z = 0; z < copy->depth && !status; z++) {
        uint64_t there = target.address + z * target.slice, here = source.address + z * source.slice;
        status = transfer_check_direction(there, here, shape, kind);
        if (!status) status = transfer_copy(stream, there, here, shape, asynchronous);
    }
    return status;
}

static int copy_planes(const struct cube *copy, void *handle, bool asynchronous, const char *function) {
    CALL(function);
    NEED_STREAM(stream, handle);
    NEED(copy, INVALID_VALUE);
    ANSWER(cube_copy(copy, stream, asynchronous));
}

static struct side_3d side_of(const struct side_2d *side) {
    return (struct side_3d){.x_bytes = side->x_bytes, .y = side->y, .type = side->type, .host = side->host,
                            .device = side->device, .array = side->array, .pitch = side->pitch};
}

static int copy_rows(const struct copy_2d *copy, void *handle, bool asynchronous, const char *function) {
    if (!copy) return copy_planes(NULL, handle, asynchronous, function);
    struct cube cube = {side_of(&copy->from), side_of(&copy->to), copy->width, copy->height, 1};
    return copy_planes(&cube, handle, asynchronous, function);
}

EXPORT int cuMemcpy2D_v2(const struct copy_2d *copy) { return copy_rows(copy, NULL, false, "cuMemcpy2D_v2"); }
EXPORT int cuMemcpy2DUnaligned_v2(const struct copy_2d *copy) {
    return copy_rows(copy, NULL, false, "cuMemcpy2DUnaligned_v2");
}
EXPORT int cuMemcpy2DAsync_v2(const struct copy_2d *copy, void *stream) {
    return copy_rows(copy, stream, true, "cuMemcpy2DAsync_v2");
}
EXPORT int cuMemcpy3D_v2(const struct cube *copy) { return copy_planes(copy, NULL, false, "cuMemcpy3D_v2"); }
EXPORT int cuMemcpy3DAsync_v2(const struct cube *copy, void *stream) {
    return copy_planes(copy, stream, true, "cuMemcpy3DAsync_v2");
}
EXPORT int cuMemcpy3DPeer(const struct cube *copy) { return copy_planes(copy, NULL, false, "cuMemcpy3DPeer"); }
EXPORT int cuMemcpy3DPeerAsync(const struct cube *copy, void *stream) {
    return copy_planes(copy, stream, true, "cuMemcpy3DPeerAsync");
}

// A row of an array, which may begin at any byte.
static int copy_row(struct side_3d from, struct side_3d to, size_t bytes, void *stream, bool asynchronous,
                    const char *function) {
    struct cube cube = {from, to, bytes, 1, 1};
    return copy_planes(&cube, stream, asynchronous, function);
}

static struct side_3d in_array(void *array, size_t offset) {
    return (struct side_3d){.type = ARRAY, .array = (uint64_t)array, .x_bytes = offset};
}
static struct side_3d on_host(const void *host) { return (struct side_3d){.type = HOST, .host = (uint64_t)host}; }
static struct side_3d on_device(uint64_t address) { return (struct side_3d){.type = DEVICE, .device = address}; }

EXPORT int cuMemcpyHtoA_v2(void *array, size_t offset, const void *host, size_t bytes) {
    return copy_row(on_host(host), in_array(array, offset), bytes, NULL, false, "cuMemcpyHtoA_v2");
}
EXPORT int cuMemcpyAtoH_v2(void *host, void *array, size_t offset, size_t bytes) {
    return copy_row(in_array(array, offset), on_host(host), bytes, NULL, false, "cuMemcpyAtoH_v2");
}
EXPORT int cuMemcpyDtoA_v2(void *array, size_t offset, uint64_t address, size_t bytes) {
    return copy_row(on_device(address), in_array(array, offset), bytes, NULL, false, "cuMemcpyDtoA_v2");
}
EXPORT int cuMemcpyAtoD_v2(uint64_t address, void *array, size_t offset, size_t bytes) {
    return copy_row(in_array(array, offset), on_device(address), bytes, NULL, false, "cuMemcpyAtoD_v2");
}
EXPORT int cuMemcpyHtoAAsync_v2(void *array, size_t offset, const void *host, size_t bytes, void *stream) {
    return copy_row(on_host(host), in_array(array, offset), bytes, stream, true, "cuMemcpyHtoAAsync_v2");
}
EXPORT int cuMemcpyAtoHAsync_v2(void *host, void *array, size_t offset, size_t bytes, void *stream) {
    return copy_row(in_array(array, offset), on_host(host), bytes, stream, true, "cuMemcpyAtoHAsync_v2");
}

// -- hints -----------------------------------------------------------------------------------------------------------

static int advise(uint64_t address, size_t bytes, int advice, uint64_t place, bool is_structure, const char *function) {
    CALL(function);
    ANSWER(managed_advise(address, bytes, advice, place, is_structure));
}
static int prefetch(uint64_t address, size_t bytes, uint64_t place, bool is_structure, void *stream,
                    const char *function) {
    CALL(function);
    NEED_STREAM(found, stream);
    (void)found;
    ANSWER(managed_prefetch(address, bytes, place, is_structure));
}

// Since CUDA 13 headers give the later forms the old names; a program that was linked before has the old ones.
EXPORT int cuMemAdvise(uint64_t address, size_t bytes, int advice, int device) {
    return advise(address, bytes, advice, (uint32_t)device, false, "cuMemAdvise");
}
EXPORT int cuMemAdvise_v2(uint64_t address, size_t bytes, int advice, uint64_t place) {
    return advise(address, bytes, advice, place, true, "cuMemAdvise_v2");
}
EXPORT int cuMemPrefetchAsync(uint64_t address, size_t bytes, int device, void *stream) {
    return prefetch(address, bytes, (uint32_t)device, false, stream, "cuMemPrefetchAsync");
}
EXPORT int cuMemPrefetchAsync_v2(uint64_t address, size_t bytes, uint64_t place, unsigned flags, void *stream) {
    return prefetch(address, flags ? 0 : bytes, place, true, stream, "cuMemPrefetchAsync_v2");
}

EXPORT int cuMemHostGetFlags(unsigned *flags, void *host) {
    CALL("cuMemHostGetFlags");
    NEED_CONTEXT;
    struct span span = memory_find((uint64_t)host);
    NEED(flags && !span.dead && (span.thing == THING_PINNED || span.thing == THING_REGISTERED), INVALID_VALUE);
    *flags = span.flags;
    ANSWER(OK);
}
