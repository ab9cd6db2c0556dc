// The front end that answers as libcuda: the basics of the driver interface that runtime clients call at start.

#include <string.h>

#define LIBCUDA
#include "surfaces/calls.h"

EXPORT int cuInit(unsigned flags) {
    CALL_OUTSIDE("cuInit");
    NEED(!flags, INVALID_VALUE);
    driver_initialized = true;
    ANSWER(OK);
}

EXPORT int cuDriverGetVersion(int *version) {
    CALL_OUTSIDE("cuDriverGetVersion");
    NEED(version, INVALID_VALUE);
    *version = device_release();
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
    device_name(name, (size_t)bytes, (unsigned)device);
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

EXPORT int cuCtxGetDevice(int *device) {
    CALL("cuCtxGetDevice");
    NEED_CONTEXT;
    NEED(device, INVALID_VALUE);
    *device = (int)device_current();
    ANSWER(OK);
}

#define DRIVER(name) cu##name
#define DRIVER_NAME(name) "cu" #name
#include "surfaces/virtual_calls.inc"

// -- waiting for a value ---------------------------------------------------------------------------------------------

static int await_value(void *handle, uint64_t address, uint64_t value, unsigned value_bytes, unsigned flags,
                       const char *function) {
    CALL(function);
    NEED_STREAM(stream, handle);
    ANSWER(value_await(stream, address, value, value_bytes == 4 ? UINT32_MAX : UINT64_MAX, value_bytes, flags));
}

// Headers give the functions of _v2 the old ones' names.
EXPORT int cuStreamWaitValue32_v2(void *handle, uint64_t address, uint32_t value, unsigned flags) {
    return await_value(handle, address, value, 4, flags, "cuStreamWaitValue32_v2");
}
EXPORT int cuStreamWaitValue64_v2(void *handle, uint64_t address, uint64_t value, unsigned flags) {
    return await_value(handle, address, value, 8, flags, "cuStreamWaitValue64_v2");
}

static int write_value(void *handle, uint64_t address, uint64_t value, unsigned value_bytes, unsigned flags,
                       const char *function) {
    CALL(function);
    NEED_STREAM(stream, handle);
    ANSWER(value_write(stream, address, value, value_bytes, flags));
}

EXPORT int cuStreamWriteValue32(void *handle, uint64_t address, uint32_t value, unsigned flags) {
    return write_value(handle, address, value, 4, flags, "cuStreamWriteValue32");
}
EXPORT int cuStreamWriteValue64(void *handle, uint64_t address, uint64_t value, unsigned flags) {
    return write_value(handle, address, value, 8, flags, "cuStreamWriteValue64");
}
EXPORT int cuStreamWriteValue32_v2(void *handle, uint64_t address, uint32_t value, unsigned flags) {
    return write_value(handle, address, value, 4, flags, "cuStreamWriteValue32_v2");
}
EXPORT int cuStreamWriteValue64_v2(void *handle, uint64_t address, uint64_t value, unsigned flags) {
    return write_value(handle, address, value, 8, flags, "cuStreamWriteValue64_v2");
}
