// The front end that answers as libcuda: the basics of the driver interface that runtime clients call at start.
//
// A context stands for its device: the handle of device d's primary context is d + 1.

#include <string.h>

#include "calls.h"

static void *context_of(unsigned device) { return (void *)(uint64_t)(device + 1); }

EXPORT int cuInit(unsigned flags) {
    CALL("cuInit");
    ANSWER(flags ? INVALID_VALUE : OK);
}

EXPORT int cuDriverGetVersion(int *version) {
    CALL("cuDriverGetVersion");
    NEED(version, INVALID_VALUE);
    *version = (int)settings.version * 1000;
    ANSWER(OK);
}

EXPORT int cuDeviceGetCount(int *count) {
    CALL("cuDeviceGetCount");
    NEED(count, INVALID_VALUE);
    *count = (int)settings.devices;
    ANSWER(OK);
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
    CALL("cuDeviceGet");
    NEED(device, INVALID_VALUE);
    NEED(device_exists(ordinal), INVALID_DEVICE);
    *device = ordinal;
    ANSWER(OK);
}

EXPORT int cuDeviceGetName(char *name, int bytes, int device) {
    CALL("cuDeviceGetName");
    NEED(name && bytes > 0, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    snprintf(name, (size_t)bytes, "quiesce simulated device %d", device);
    ANSWER(OK);
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    CALL("cuDeviceGetAttribute");
    NEED(value, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    ANSWER(device_attribute(attribute, (unsigned)device, value));
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    CALL("cuDeviceTotalMem_v2");
    NEED(bytes, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    *bytes = settings.capacity_bytes;
    ANSWER(OK);
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    CALL("cuDevicePrimaryCtxGetState");
    NEED(flags && active, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    *flags = 0;
    *active = 1;
    ANSWER(OK);
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
    CALL("cuDevicePrimaryCtxRetain");
    NEED(context, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    *context = context_of((unsigned)device);
    ANSWER(OK);
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    CALL("cuDevicePrimaryCtxRelease_v2");
    ANSWER(device_exists(device) ? OK : INVALID_DEVICE);
}

EXPORT int cuCtxGetCurrent(void **context) {
    CALL("cuCtxGetCurrent");
    NEED(context, INVALID_VALUE);
    *context = context_of(device_current());
    ANSWER(OK);
}

EXPORT int cuCtxSetCurrent(void *context) {
    CALL("cuCtxSetCurrent");
    NEED(context, OK);  // no context becomes current: the device stays
    ANSWER(device_select((int)(uint64_t)context - 1));
}

EXPORT int cuCtxGetDevice(int *device) {
    CALL("cuCtxGetDevice");
    NEED(device, INVALID_VALUE);
    *device = (int)device_current();
    ANSWER(OK);
}

EXPORT int cuCtxSynchronize(void) {
    CALL("cuCtxSynchronize");
    ANSWER(stream_synchronize_device(device_current()));
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    CALL("cuMemGetInfo_v2");
    NEED(free_bytes && total_bytes, INVALID_VALUE);
    uint64_t available, total;
    memory_info(device_current(), &available, &total);
    *free_bytes = available;
    *total_bytes = total;
    ANSWER(OK);
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t size_bytes) {
    CALL("cuMemAlloc_v2");
    NEED(address && size_bytes, INVALID_VALUE);  // "If bytesize is 0, cuMemAlloc() returns CUDA_ERROR_INVALID_VALUE"
    ANSWER(memory_allocate(THING_DEVICE, device_current(), size_bytes, 0, address));
}

EXPORT int cuMemFree_v2(uint64_t address) {
    CALL("cuMemFree_v2");
    ANSWER(memory_free(THING_DEVICE, THING_MANAGED, address));
}

// -- waiting for a value ---------------------------------------------------------------------------------------------

static int await_value(void *handle, uint64_t address, uint64_t value, unsigned value_bytes, unsigned flags,
                       const char *function) {
    CALL(function);
    struct stream *stream = stream_find((uint64_t)handle, device_current(), false);
    NEED(stream, INVALID_HANDLE);
    ANSWER(value_await(stream, address, value, value_bytes == 4 ? UINT32_MAX : UINT64_MAX, value_bytes, flags));
}

// Headers give the functions of _v2 the old ones' names.
EXPORT int cuStreamWaitValue32_v2(void *handle, uint64_t address, uint32_t value, unsigned flags) {
    return await_value(handle, address, value, 4, flags, "cuStreamWaitValue32_v2");
}
EXPORT int cuStreamWaitValue64_v2(void *handle, uint64_t address, uint64_t value, unsigned flags) {
    return await_value(handle, address, value, 8, flags, "cuStreamWaitValue64_v2");
}

// -- errors ----------------------------------------------------------------------------------------------------------

EXPORT int cuGetErrorName(int error, const char **name) {
    if (!name) return INVALID_VALUE;
    *name = status_name(error, false);
    return OK;
}

EXPORT int cuGetErrorString(int error, const char **text) {
    if (!text) return INVALID_VALUE;
    *text = status_text(error);
    return OK;
}
