// The front end that answers as libcudart: execution contexts of CUDA 13.1. A device has the one of its own; contexts
// of a part of a device (cudaGreenCtxCreate) are not simulated. A handle is a device's number and one, as the driver's.

#define RUNTIME
#include "surfaces/calls.h"

static int device_of(const void *context) { return (int)(uint64_t)context - 1; }

EXPORT int cudaDeviceGetExecutionCtx(void **context, int device) {
    CALL("cudaDeviceGetExecutionCtx");
    NEED(context, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    *context = (void *)(uint64_t)(device + 1);
    ANSWER(OK);
}

EXPORT int cudaExecutionCtxGetDevice(int *device, void *context) {
    CALL("cudaExecutionCtxGetDevice");
    NEED(device && device_exists(device_of(context)), INVALID_VALUE);
    *device = device_of(context);
    ANSWER(OK);
}

EXPORT int cudaExecutionCtxGetId(void *context, unsigned long long *identifier) {
    CALL("cudaExecutionCtxGetId");
    NEED(identifier && device_exists(device_of(context)), INVALID_VALUE);
    *identifier = (uint64_t)context;
    ANSWER(OK);
}

EXPORT int cudaExecutionCtxStreamCreate(void **made, void *context, unsigned flags, int priority) {
    CALL("cudaExecutionCtxStreamCreate");
    struct stream *stream;
    NEED(made && flags <= 1 && device_exists(device_of(context)), INVALID_VALUE);
    priority = priority < -1 ? -1 : priority > 0 ? 0 : priority;  // "it will automatically be clamped"
    status = stream_create((unsigned)device_of(context), flags, priority, &stream);
    if (!status) *made = (void *)HIDDEN(stream->hidden_handle);
    ANSWER(status);
}

EXPORT int cudaExecutionCtxSynchronize(void *context) {
    CALL("cudaExecutionCtxSynchronize");
    NEED(device_exists(device_of(context)), INVALID_VALUE);
    ANSWER(stream_synchronize_device((unsigned)device_of(context)));
}

// "Passing in a ctx that was not explicitly created … is not allowed".
EXPORT int cudaExecutionCtxDestroy(void *context) {
    CALL("cudaExecutionCtxDestroy");
    (void)context;
    ANSWER(INVALID_VALUE);
}
