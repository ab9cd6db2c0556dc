// The front end that answers as libcuda: contexts, and what is asked about devices beside cuda.c.

#include <string.h>

#define LIBCUDA
#include "surfaces/calls.h"

// -- primary contexts ------------------------------------------------------------------------------------------------

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    CALL("cuDevicePrimaryCtxGetState");
    NEED(flags && active, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    *flags = 0;
    *active = driver_is_alive((unsigned)device);
    ANSWER(OK);
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
    CALL("cuDevicePrimaryCtxRetain");
    NEED(context, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    driver_retain((unsigned)device);
    *context = driver_handle((unsigned)device);
    ANSWER(OK);
}

// A context that nobody uses any more is destroyed, with all that it has.
static enum status release(unsigned number) {
    bool is_last;
    enum status status = driver_release(number, &is_last);
    if (status || !is_last) return status;
    status = context_reset(number);
    if (status)
        driver_retain(number);
    else
        driver_end(number);
    return status;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    CALL("cuDevicePrimaryCtxRelease_v2");
    NEED(device_exists(device), INVALID_DEVICE);
    ANSWER(release((unsigned)device));
}

EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
    CALL("cuDevicePrimaryCtxReset_v2");
    NEED(device_exists(device), INVALID_DEVICE);
    status = context_reset((unsigned)device);
    if (!status) driver_end((unsigned)device);
    ANSWER(status);
}

EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    CALL("cuDevicePrimaryCtxSetFlags_v2");
    (void)flags;  // how the host waits
    ANSWER(device_exists(device) ? OK : INVALID_DEVICE);
}

// -- making and ending -----------------------------------------------------------------------------------------------

static int create(void **context, unsigned flags, int device, const char *function) {
    enum { KNOWN_FLAGS = 0xff };  // how the host waits, and what is dumped
    CALL(function);
    NEED(context && !(flags & ~(unsigned)KNOWN_FLAGS), INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    NEED(context_stack.depth < CONTEXT_DEPTH_MAX, OUT_OF_MEMORY);
    unsigned number;
    status = driver_create((unsigned)device, &number);
    if (!status) status = driver_push(number);
    if (!status) *context = driver_handle(number);
    ANSWER(status);
}

EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    return create(context, flags, device, "cuCtxCreate_v2");
}
EXPORT int cuCtxCreate_v3(void **context, void *parameters, int count, unsigned flags, int device) {
    (void)parameters, (void)count;
    return create(context, flags, device, "cuCtxCreate_v3");
}
EXPORT int cuCtxCreate_v4(void **context, void *parameters, unsigned flags, int device) {
    (void)parameters;
    return create(context, flags, device, "cuCtxCreate_v4");
}

static bool is_current(unsigned number) { return driver_has_context() && device_context() == number; }

// "It is the responsibility of the calling function to ensure that no API call issues using ctx while cuCtxDestroy() is
// executing": on other threads' stacks it stays, and can't be used.
static enum status destroy(unsigned number) {
    enum status status = context_reset(number);
    if (status) return status;
    driver_end(number);
    if (is_current(number)) driver_pop();
    return OK;
}

#define NEED_NAMED(number, context)                 \
    unsigned number;                                \
    NEED(context, INVALID_VALUE);                   \
    status = driver_find(context, &number);         \
    NEED(!status, status)

EXPORT int cuCtxDestroy_v2(void *context) {
    CALL("cuCtxDestroy_v2");
    NEED_NAMED(number, context);
    NEED(number >= DEVICES_MAX, INVALID_CONTEXT);  // a primary one is released
    ANSWER(destroy(number));
}

EXPORT int cuCtxAttach(void **context, unsigned flags) {
    CALL("cuCtxAttach");
    NEED_CONTEXT;
    NEED(context && !flags, INVALID_VALUE);
    driver_retain(device_context());
    *context = driver_handle(device_context());
    ANSWER(OK);
}

// "Decrements the usage count of the context ctx, and destroys the context if the usage count goes to 0. The context
// must be a handle that was passed back by cuCtxCreate() or cuCtxAttach(), and must be current to the calling thread."
EXPORT int cuCtxDetach(void *context) {
    CALL("cuCtxDetach");
    NEED(driver_has_context(), INVALID_CONTEXT);
    NEED_NAMED(number, context);
    NEED(is_current(number), INVALID_CONTEXT);
    status = release(number);
    if (!status && !driver_is_alive(number) && is_current(number)) driver_pop();
    ANSWER(status);
}

// -- what is current -------------------------------------------------------------------------------------------------

// "If CUcontext is NULL then … an unbound … thread": what lies below becomes current. Else the top is replaced.
EXPORT int cuCtxSetCurrent(void *context) {
    CALL("cuCtxSetCurrent");
    if (!context) {
        if (driver_has_context()) driver_pop();
        ANSWER(OK);
    }
    NEED_NAMED(number, context);
    if (driver_has_context())
        driver_set(number);
    else
        status = driver_push(number);
    ANSWER(status);
}

EXPORT int cuCtxSynchronize(void) {
    CALL("cuCtxSynchronize");
    NEED_CONTEXT;
    ANSWER(stream_synchronize_device(device_current()));
}

EXPORT int cuCtxGetCurrent(void **context) {
    CALL("cuCtxGetCurrent");
    NEED(context, INVALID_VALUE);
    *context = driver_has_context() ? driver_handle(device_context()) : NULL;
    ANSWER(OK);
}

EXPORT int cuCtxPushCurrent_v2(void *context) {
    CALL("cuCtxPushCurrent_v2");
    NEED_NAMED(number, context);
    ANSWER(driver_push(number));
}

EXPORT int cuCtxPopCurrent_v2(void **context) {
    CALL("cuCtxPopCurrent_v2");
    NEED(driver_has_context(), INVALID_CONTEXT);
    if (context) *context = driver_handle(device_context());
    driver_pop();
    ANSWER(OK);
}

EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CALL("cuCtxGetStreamPriorityRange");
    NEED_CONTEXT;
    if (least) *least = 0;
    if (greatest) *greatest = -1;
    ANSWER(OK);
}

EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer) {
    CALL("cuDeviceCanAccessPeer");
    NEED(can, INVALID_VALUE);
    NEED(device_exists(device) && device_exists(peer), INVALID_DEVICE);
    *can = device != peer;
    ANSWER(OK);
}

EXPORT int cuCtxEnablePeerAccess(void *context, unsigned flags) {
    CALL("cuCtxEnablePeerAccess");
    NEED_CONTEXT;
    unsigned number;
    NEED(!flags, INVALID_VALUE);
    status = driver_find(context, &number);
    ANSWER(status ? status : device_enable_peer(driver_device(number)));
}

EXPORT int cuCtxDisablePeerAccess(void *context) {
    CALL("cuCtxDisablePeerAccess");
    NEED_CONTEXT;
    unsigned number;
    status = driver_find(context, &number);
    ANSWER(status ? status : device_disable_peer(driver_device(number)));
}

static int identify(void *bytes, int device, const char *function) {
    CALL(function);
    NEED(bytes, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    device_uuid(bytes, (unsigned)device);
    ANSWER(OK);
}
EXPORT int cuDeviceGetUuid(void *bytes, int device) { return identify(bytes, device, "cuDeviceGetUuid"); }
EXPORT int cuDeviceGetUuid_v2(void *bytes, int device) { return identify(bytes, device, "cuDeviceGetUuid_v2"); }

EXPORT int cuDeviceComputeCapability(int *major, int *minor, int device) {
    CALL("cuDeviceComputeCapability");
    enum { MAJOR = 75, MINOR = 76 };
    NEED(major && minor, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    device_attribute(MAJOR, (unsigned)device, major);
    ANSWER(device_attribute(MINOR, (unsigned)device, minor));
}

// What a multicast object is for are several devices that share memory over a switch.
#define UNSIMULATED(name)                                                                  \
    EXPORT int name(void) {                                                                \
        CALL(#name);                                                                       \
        ANSWER(unsimulated(#name, "leave it out where the device attribute 132 says 0"));  \
    }
UNSIMULATED(cuMulticastCreate)
UNSIMULATED(cuMulticastAddDevice)
UNSIMULATED(cuMulticastBindMem)

// The forms of CUDA 3 to 10, which took the same arguments.
EXPORT int cuCtxDestroy(void *context) { return cuCtxDestroy_v2(context); }
EXPORT int cuCtxPushCurrent(void *context) { return cuCtxPushCurrent_v2(context); }
EXPORT int cuCtxPopCurrent(void **context) { return cuCtxPopCurrent_v2(context); }
EXPORT int cuDevicePrimaryCtxRelease(int device) { return cuDevicePrimaryCtxRelease_v2(device); }
EXPORT int cuDevicePrimaryCtxReset(int device) { return cuDevicePrimaryCtxReset_v2(device); }
EXPORT int cuDevicePrimaryCtxSetFlags(int device, unsigned flags) {
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}
