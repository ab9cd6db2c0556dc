// The front end that answers as libcuda: contexts, and what is asked about devices beside cuda.c.
//
// A device has one context here, which the runtime uses too: one that is created is that, and takes what the device has
// along when it is destroyed.

#include <string.h>

#define LIBCUDA
#include "surfaces/calls.h"

static void *context_of(unsigned device) { return (void *)(uint64_t)(device + 1); }

// -- making and ending -----------------------------------------------------------------------------------------------

static int create(void **context, int device, const char *function) {
    CALL(function);
    NEED(context, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    status = driver_push(device);
    if (!status) driver_usages[device]++;
    if (!status) *context = context_of((unsigned)device);
    ANSWER(status);
}

EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    (void)flags;  // how the host waits
    return create(context, device, "cuCtxCreate_v2");
}
EXPORT int cuCtxCreate_v3(void **context, void *parameters, int count, unsigned flags, int device) {
    (void)parameters, (void)count, (void)flags;
    return create(context, device, "cuCtxCreate_v3");
}
EXPORT int cuCtxCreate_v4(void **context, void *parameters, unsigned flags, int device) {
    (void)parameters, (void)flags;
    return create(context, device, "cuCtxCreate_v4");
}

static bool is_current(int device) { return driver_has_context() && device_current() == (unsigned)device; }

static enum status destroy(int device) {
    enum status status = context_reset((unsigned)device);
    if (status) return status;
    driver_usages[device] = 0;
    return is_current(device) ? driver_pop() : OK;
}

EXPORT int cuCtxDestroy_v2(void *context) {
    CALL("cuCtxDestroy_v2");
    int device = (int)(uint64_t)context - 1;
    NEED(device_exists(device), INVALID_CONTEXT);
    ANSWER(destroy(device));
}

EXPORT int cuCtxAttach(void **context, unsigned flags) {
    CALL("cuCtxAttach");
    NEED_CONTEXT;
    NEED(context && !flags, INVALID_VALUE);
    driver_usages[device_current()]++;
    *context = context_of(device_current());
    ANSWER(OK);
}

// "Decrements the usage count of the context ctx, and destroys the context if the usage count goes to 0. The context
// must be a handle that was passed back by cuCtxCreate() or cuCtxAttach(), and must be current to the calling thread."
EXPORT int cuCtxDetach(void *context) {
    CALL("cuCtxDetach");
    int device = (int)(uint64_t)context - 1;
    NEED(device_exists(device) && is_current(device) && driver_usages[device], INVALID_CONTEXT);
    if (driver_usages[device] == 1) ANSWER(destroy(device));
    driver_usages[device]--;
    ANSWER(OK);
}

// -- what is current -------------------------------------------------------------------------------------------------

// "If CUcontext is NULL then … an unbound … thread": what lies below becomes current. Else the top is replaced.
EXPORT int cuCtxSetCurrent(void *context) {
    CALL("cuCtxSetCurrent");
    int device = (int)(uint64_t)context - 1;
    if (!context) ANSWER(driver_has_context() ? driver_pop() : OK);
    NEED(device_exists(device), INVALID_CONTEXT);
    ANSWER(driver_has_context() ? device_select(device) : driver_push(device));
}

EXPORT int cuCtxSynchronize(void) {
    CALL("cuCtxSynchronize");
    NEED_CONTEXT;
    ANSWER(stream_synchronize_device(device_current()));
}

EXPORT int cuCtxGetCurrent(void **context) {
    CALL("cuCtxGetCurrent");
    NEED(context, INVALID_VALUE);
    *context = driver_has_context() ? context_of(device_current()) : NULL;
    ANSWER(OK);
}

EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
    CALL("cuDevicePrimaryCtxReset_v2");
    NEED(device_exists(device), INVALID_DEVICE);
    ANSWER(context_reset((unsigned)device));
}

EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    CALL("cuDevicePrimaryCtxSetFlags_v2");
    (void)flags;  // how the host waits
    ANSWER(device_exists(device) ? OK : INVALID_DEVICE);
}

EXPORT int cuCtxPushCurrent_v2(void *context) {
    CALL("cuCtxPushCurrent_v2");
    int device = (int)(uint64_t)context - 1;
    NEED(device_exists(device), INVALID_CONTEXT);
    ANSWER(driver_push(device));
}

EXPORT int cuCtxPopCurrent_v2(void **context) {
    CALL("cuCtxPopCurrent_v2");
    NEED_CONTEXT;
    if (context) *context = context_of(device_current());
    ANSWER(driver_pop());
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
    int peer = (int)(uint64_t)context - 1;
    NEED(!flags, INVALID_VALUE);
    NEED(device_exists(peer), INVALID_CONTEXT);
    ANSWER(device_enable_peer((unsigned)peer));
}

EXPORT int cuCtxDisablePeerAccess(void *context) {
    CALL("cuCtxDisablePeerAccess");
    NEED_CONTEXT;
    int peer = (int)(uint64_t)context - 1;
    NEED(device_exists(peer), INVALID_CONTEXT);
    ANSWER(device_disable_peer((unsigned)peer));
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
int cuDevicePrimaryCtxRelease_v2(int device);  // in cuda.c
EXPORT int cuDevicePrimaryCtxRelease(int device) { return cuDevicePrimaryCtxRelease_v2(device); }
EXPORT int cuDevicePrimaryCtxReset(int device) { return cuDevicePrimaryCtxReset_v2(device); }
EXPORT int cuDevicePrimaryCtxSetFlags(int device, unsigned flags) {
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}
