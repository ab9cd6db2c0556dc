// The front end that answers as libcuda: what is asked and set of devices and contexts, beside cuda.c and
// cuda_contexts.c.

#include <stdio.h>

#define LIBCUDA
#include "surfaces/calls.h"

// -- devices ---------------------------------------------------------------------------------------------------------

EXPORT int cuDeviceGetPCIBusId(char *text, int bytes, int device) {
    CALL("cuDeviceGetPCIBusId");
    NEED(text && bytes >= 13, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    device_bus(text, (size_t)bytes, (unsigned)device);
    ANSWER(OK);
}

EXPORT int cuDeviceGetByPCIBusId(int *device, const char *text) {
    CALL("cuDeviceGetByPCIBusId");
    NEED(device && text, INVALID_VALUE);
    ANSWER(device_on_bus(text, device));
}

EXPORT int cuDeviceGetP2PAttribute(int *value, int attribute, int device, int peer) {
    CALL("cuDeviceGetP2PAttribute");
    NEED(value, INVALID_VALUE);
    ANSWER(device_peer_attribute(attribute, device, peer, value));
}

// -- contexts --------------------------------------------------------------------------------------------------------

static enum status find(void *context, unsigned *number) {
    if (context) return driver_find(context, number);
    *number = device_context();
    return driver_context_needed();
}

EXPORT int cuCtxGetDevice_v2(int *device, void *context) {
    CALL("cuCtxGetDevice_v2");
    unsigned number;
    status = find(context, &number);
    NEED(!status, status);
    NEED(device, INVALID_VALUE);
    *device = (int)driver_device(number);
    ANSWER(status);
}

EXPORT int cuCtxSynchronize_v2(void *context) {
    CALL("cuCtxSynchronize_v2");
    unsigned number;
    status = find(context, &number);
    ANSWER(status ? status : stream_synchronize_device(driver_device(number)));
}

EXPORT int cuCtxGetId(void *context, unsigned long long *identifier) {
    CALL("cuCtxGetId");
    unsigned number;
    status = find(context, &number);
    NEED(!status, status);
    NEED(identifier, INVALID_VALUE);
    *identifier = number + 1;
    ANSWER(status);
}

EXPORT int cuCtxGetApiVersion(void *context, unsigned *version) {
    CALL("cuCtxGetApiVersion");
    unsigned number;
    status = find(context, &number);
    NEED(!status, status);
    NEED(version, INVALID_VALUE);
    *version = (unsigned)device_release();
    ANSWER(status);
}

EXPORT int cuCtxGetFlags(unsigned *flags) {
    CALL("cuCtxGetFlags");
    NEED_CONTEXT;
    NEED(flags, INVALID_VALUE);
    *flags = 0;  // how the host waits, which has no meaning here
    ANSWER(OK);
}

EXPORT int cuCtxGetLimit(size_t *bytes, int limit) {
    CALL("cuCtxGetLimit");
    NEED_CONTEXT;
    size_t *kept;
    NEED(bytes, INVALID_VALUE);
    status = device_limit(limit, &kept);
    if (!status) *bytes = *kept;
    ANSWER(status);
}

EXPORT int cuCtxSetLimit(int limit, size_t bytes) {
    CALL("cuCtxSetLimit");
    NEED_CONTEXT;
    ANSWER(device_heap_set_limit(limit, bytes));
}

// A preference alone: "it is free to choose a different configuration" (cuCtxSetCacheConfig).
EXPORT int cuCtxSetCacheConfig(int configuration) {
    CALL("cuCtxSetCacheConfig");
    NEED_CONTEXT;
    ANSWER(configuration >= 0 && configuration <= 3 ? OK : INVALID_VALUE);
}
EXPORT int cuCtxGetCacheConfig(int *configuration) {
    CALL("cuCtxGetCacheConfig");
    NEED_CONTEXT;
    NEED(configuration, INVALID_VALUE);
    *configuration = 0;
    ANSWER(OK);
}

EXPORT int cuCtxResetPersistingL2Cache(void) {
    CALL("cuCtxResetPersistingL2Cache");
    NEED_CONTEXT;
    ANSWER(OK);
}

EXPORT int cuProfilerStart(void) {
    CALL("cuProfilerStart");
    NEED_CONTEXT;
    ANSWER(OK);  // no profiler looks
}
EXPORT int cuProfilerStop(void) {
    CALL("cuProfilerStop");
    NEED_CONTEXT;
    ANSWER(OK);
}
