// The front end that answers as libcuda: memory. Its functions are the runtime's under other names, and with the
// arguments in another order; what they do, and when, stands in memory.c and transfer.c.

#include <string.h>

#define LIBCUDA
#include "surfaces/calls.h"

// -- host and managed memory -----------------------------------------------------------------------------------------

static int allocate(enum thing thing, void **address, size_t size_bytes, unsigned flags, const char *function) {
    CALL(function);
    NEED_CONTEXT;
    uint64_t made;
    NEED(address && size_bytes, INVALID_VALUE);
    status = memory_allocate(thing, device_current(), size_bytes, flags, &made);
    if (!status) *address = (void *)made;
    ANSWER(status);
}

EXPORT int cuMemAllocHost_v2(void **address, size_t size_bytes) {
    return allocate(THING_PINNED, address, size_bytes, 0, "cuMemAllocHost_v2");
}
EXPORT int cuMemHostAlloc(void **address, size_t size_bytes, unsigned flags) {
    return allocate(THING_PINNED, address, size_bytes, flags, "cuMemHostAlloc");
}
EXPORT int cuMemAllocManaged(void **address, size_t size_bytes, unsigned flags) {
    bool known = flags == 1 || flags == 2;  // attached to all, or to the host
    return allocate(THING_MANAGED, known ? address : NULL, size_bytes, flags, "cuMemAllocManaged");
}

EXPORT int cuMemFreeHost(void *address) {
    CALL("cuMemFreeHost");
    ANSWER(memory_free(THING_PINNED, THING_PINNED, (uint64_t)address));
}

EXPORT int cuMemHostRegister_v2(void *address, size_t size_bytes, unsigned flags) {
    CALL("cuMemHostRegister_v2");
    NEED_CONTEXT;
    ANSWER(memory_register((uint64_t)address, size_bytes, flags));
}

EXPORT int cuMemHostUnregister(void *address) {
    CALL("cuMemHostUnregister");
    ANSWER(memory_unregister((uint64_t)address));
}

EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *device, void *host, unsigned flags) {
    CALL("cuMemHostGetDevicePointer_v2");
    NEED_CONTEXT;
    struct span span = memory_find((uint64_t)host);
    NEED(device && !flags && !span.dead && (span.thing == THING_PINNED || span.thing == THING_REGISTERED),
         INVALID_VALUE);
    *device = (uint64_t)host;
    ANSWER(OK);
}

// -- device memory ---------------------------------------------------------------------------------------------------

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    CALL("cuMemGetInfo_v2");
    NEED_CONTEXT;
    NEED(free_bytes && total_bytes, INVALID_VALUE);
    uint64_t available, total;
    memory_info(device_current(), &available, &total);
    *free_bytes = available;
    *total_bytes = total;
    ANSWER(OK);
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t size_bytes) {
    CALL("cuMemAlloc_v2");
    if (address) *address = 0;  // also where the call fails
    NEED_CONTEXT;
    NEED(address && size_bytes, INVALID_VALUE);  // "If bytesize is 0, cuMemAlloc() returns CUDA_ERROR_INVALID_VALUE"
    ANSWER(memory_allocate(THING_DEVICE, device_current(), size_bytes, 0, address));
}

EXPORT int cuMemFree_v2(uint64_t address) {
    CALL("cuMemFree_v2");
    NEED(!driver_has_context() || !(status = driver_context_needed()), status);  // addresses have contexts
    ANSWER(memory_free(THING_DEVICE, THING_MANAGED, address));
}

EXPORT int cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height, unsigned element_bytes) {
    CALL("cuMemAllocPitch_v2");
    NEED_CONTEXT;
    NEED(address && pitch && width && height && width <= (SIZE_MAX >> 1) / height, INVALID_VALUE);
    NEED(element_bytes == 4 || element_bytes == 8 || element_bytes == 16, INVALID_VALUE);
    *pitch = (width + 511) / 512 * 512;
    ANSWER(memory_allocate(THING_DEVICE, device_current(), *pitch * height, 0, address));
}

EXPORT int cuMemAllocAsync(uint64_t *address, size_t size_bytes, void *handle) {
    CALL("cuMemAllocAsync");
    NEED_STREAM(stream, handle);
    NEED(address && size_bytes, INVALID_VALUE);
    struct pool *pool = pool_current(stream->device);
    NEED(pool, OUT_OF_MEMORY);
    ANSWER(memory_allocate_ordered(pool, size_bytes, stream, address));
}

EXPORT int cuMemFreeAsync(uint64_t address, void *handle) {
    CALL("cuMemFreeAsync");
    NEED_STREAM(stream, handle);
    ANSWER(memory_free_ordered(address, stream));
}

EXPORT int cuMemGetAddressRange_v2(uint64_t *start, size_t *bytes, uint64_t address) {
    CALL("cuMemGetAddressRange_v2");
    NEED_CONTEXT;
    struct span span = memory_find(address);
    NEED(span.thing != THING_NONE && !span.dead, NOT_FOUND);
    if (start) *start = span.start;
    if (bytes) *bytes = span.size_bytes;
    ANSWER(OK);
}

// -- copies ----------------------------------------------------------------------------------------------------------

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };  // as the runtime numbers them

static int copy(uint64_t to, uint64_t from, size_t size_bytes, int kind, void *handle, bool asynchronous,
                const char *function) {
    CALL(function);
    NEED_STREAM(stream, handle);
    struct shape shape = {size_bytes, size_bytes, size_bytes, 1};
    status = transfer_check_direction(to, from, shape, kind);
    ANSWER(status ? status : transfer_copy(stream, to, from, shape, asynchronous));
}

EXPORT int cuMemcpy(uint64_t to, uint64_t from, size_t size_bytes) {
    return copy(to, from, size_bytes, BY_ADDRESS, NULL, false, "cuMemcpy");
}
EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size_bytes, void *stream) {
    return copy(to, from, size_bytes, BY_ADDRESS, stream, true, "cuMemcpyAsync");
}
EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size_bytes) {
    return copy(to, (uint64_t)from, size_bytes, HOST_TO_DEVICE, NULL, false, "cuMemcpyHtoD_v2");
}
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size_bytes, void *stream) {
    return copy(to, (uint64_t)from, size_bytes, HOST_TO_DEVICE, stream, true, "cuMemcpyHtoDAsync_v2");
}
EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size_bytes) {
    return copy((uint64_t)to, from, size_bytes, DEVICE_TO_HOST, NULL, false, "cuMemcpyDtoH_v2");
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size_bytes, void *stream) {
    return copy((uint64_t)to, from, size_bytes, DEVICE_TO_HOST, stream, true, "cuMemcpyDtoHAsync_v2");
}
EXPORT int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size_bytes) {
    return copy(to, from, size_bytes, DEVICE_TO_DEVICE, NULL, false, "cuMemcpyDtoD_v2");
}
EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size_bytes, void *stream) {
    return copy(to, from, size_bytes, DEVICE_TO_DEVICE, stream, true, "cuMemcpyDtoDAsync_v2");
}
EXPORT int cuMemcpyPeer(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t size_bytes) {
    (void)to_context, (void)from_context;  // the addresses say where they lie
    return copy(to, from, size_bytes, DEVICE_TO_DEVICE, NULL, false, "cuMemcpyPeer");
}
EXPORT int cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t size_bytes,
                             void *stream) {
    (void)to_context, (void)from_context;
    return copy(to, from, size_bytes, DEVICE_TO_DEVICE, stream, true, "cuMemcpyPeerAsync");
}

// -- fills -----------------------------------------------------------------------------------------------------------

static int fill(uint64_t to, size_t pitch, uint32_t value, unsigned value_bytes, size_t count, size_t height,
                void *handle, bool asynchronous, const char *function) {
    CALL(function);
    NEED_STREAM(stream, handle);
    NEED(to % value_bytes == 0 && count <= SIZE_MAX / 4, INVALID_VALUE);  // aligned to the element
    size_t width = count * value_bytes;
    NEED(height <= 1 || (pitch >= width && pitch % value_bytes == 0), INVALID_VALUE);
    struct fill fill = {to, pitch, width, height, value, value_bytes};
    ANSWER(transfer_fill(stream, fill, asynchronous));
}

#define FILLS(bits, type)                                                                                          \
    EXPORT int cuMemsetD##bits##_v2(uint64_t to, type value, size_t count) {                                       \
        return fill(to, 0, value, bits / 8, count, 1, NULL, false, "cuMemsetD" #bits "_v2");                       \
    }                                                                                                              \
    EXPORT int cuMemsetD##bits##Async(uint64_t to, type value, size_t count, void *stream) {                       \
        return fill(to, 0, value, bits / 8, count, 1, stream, true, "cuMemsetD" #bits "Async");                    \
    }                                                                                                              \
    EXPORT int cuMemsetD2D##bits##_v2(uint64_t to, size_t pitch, type value, size_t width, size_t height) {        \
        return fill(to, pitch, value, bits / 8, width, height, NULL, false, "cuMemsetD2D" #bits "_v2");            \
    }                                                                                                              \
    EXPORT int cuMemsetD2D##bits##Async(uint64_t to, size_t pitch, type value, size_t width, size_t height,        \
                                        void *stream) {                                                            \
        return fill(to, pitch, value, bits / 8, width, height, stream, true, "cuMemsetD2D" #bits "Async");         \
    }
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)

// -- what lies at an address -----------------------------------------------------------------------------------------

static void *context_of(uint64_t address, unsigned device) {
    uint32_t live = memory_live_at(address);
    unsigned number = live ? ledger_live(live)->context : device;
    return driver_handle(number < DEVICES_MAX ? device : number);
}

// Writes an attribute of the kind that CUpointer_attribute numbers.
static enum status describe(int attribute, uint64_t address, const struct span *span, void *target) {
    enum { CONTEXT = 1, TYPE, DEVICE_ADDRESS, HOST_ADDRESS, IS_MANAGED = 8, ORDINAL, START = 11, SIZE, MAPPED, EXPORTS,
           REMOTE, ACCESS, EXTENT = 18, BEGINNING };
    enum { TYPE_HOST = 1, TYPE_DEVICE };
    bool on_device = span->thing == THING_DEVICE || span->thing == THING_MANAGED;
    switch (attribute) {
        case CONTEXT: *(void **)target = context_of(address, span->device); return OK;
        case TYPE: *(int *)target = on_device ? TYPE_DEVICE : TYPE_HOST; return OK;
        case DEVICE_ADDRESS: *(uint64_t *)target = address; return OK;
        case HOST_ADDRESS: *(uint64_t *)target = address; return span->thing == THING_DEVICE ? INVALID_VALUE : OK;
        case IS_MANAGED: *(int *)target = span->thing == THING_MANAGED; return OK;
        case ORDINAL: *(int *)target = (int)span->device; return OK;
        case BEGINNING:
        case START: *(uint64_t *)target = span->start; return OK;
        case EXTENT:
        case SIZE: *(uint64_t *)target = span->size_bytes; return OK;
        case MAPPED: *(bool *)target = true; return OK;
        case EXPORTS: *(uint64_t *)target = 0; return OK;  // to other processes
        case REMOTE: *(bool *)target = false; return OK;   // to other devices on the bus
        case ACCESS: *(int *)target = POOL_FULL_ACCESS; return OK;
        default: return unsimulated("cuPointerGetAttribute of this kind", "ask for the type, the range or the device");
    }
}

static bool is_known(const struct span *span) { return span->thing != THING_NONE && !span->dead; }

EXPORT int cuPointerGetAttribute(void *target, int attribute, uint64_t address) {
    CALL("cuPointerGetAttribute");
    struct span span = memory_find(address);
    NEED(target && is_known(&span), INVALID_VALUE);
    if (span.thing == THING_PINNED) transfer_asked_about_pinned(address);
    ANSWER(describe(attribute, address, &span, target));
}

// "If the pointer was not allocated by, mapped by, or registered with a CUcontext … attributes … NULL values".
EXPORT int cuPointerGetAttributes(unsigned count, const int *attributes, void **targets, uint64_t address) {
    CALL("cuPointerGetAttributes");
    NEED(count && attributes && targets, INVALID_VALUE);
    struct span span = memory_find(address);
    for (unsigned i = 0; i < count && !status; i++) {
        bool narrow = attributes[i] == 2 || attributes[i] == 8 || attributes[i] == 9;
        if (is_known(&span))
            status = describe(attributes[i], address, &span, targets[i]);
        else
            memset(targets[i], 0, attributes[i] == 13 ? sizeof(bool) : narrow ? sizeof(int) : sizeof(uint64_t));
    }
    ANSWER(status);
}
