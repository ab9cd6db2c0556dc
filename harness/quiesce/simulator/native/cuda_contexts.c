// The front end that answers as libcuda: contexts, and what is asked about devices beside cuda.c.
//
// A device has one context here, which the runtime uses too: one that is created is that, and takes what the device has
// along when it is destroyed. The runtime makes one current by itself; whoever never calls it has to.

#include <string.h>

#define LEAVE runtime_leave_to_driver
#include "calls.h"

enum { DEVICE_BITS = 3, DEPTH_MAX = 21 };  // a loader has little room for what each thread has of its own

_Static_assert(DEVICES_MAX <= 1 << DEVICE_BITS && DEPTH_MAX * DEVICE_BITS < 64, "a stack of devices fits a word");

static _Thread_local struct {
    uint64_t devices;  // those that were current before, the last in the lowest bits
    unsigned depth;
} stack;

void driver_open(void) { stack.depth = 0; }

bool driver_has_context(void) { return stack.depth || runtime_was_called; }

static void *context_of(unsigned device) { return (void *)(uint64_t)(device + 1); }

static enum status push(int device) {
    if (stack.depth == DEPTH_MAX) return OUT_OF_MEMORY;
    unsigned before = device_current();
    enum status status = device_select(device);
    if (status) return status;
    stack.devices = stack.devices << DEVICE_BITS | before;
    stack.depth++;
    return OK;
}

static enum status pop(void) {
    int before = stack.devices & ((1 << DEVICE_BITS) - 1);
    stack.devices >>= DEVICE_BITS;
    stack.depth--;
    return device_select(before);
}

static int create(void **context, int device, const char *function) {
    CALL(function);
    NEED(context, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    status = push(device);
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

EXPORT int cuCtxDestroy_v2(void *context) {
    CALL("cuCtxDestroy_v2");
    int device = (int)(uint64_t)context - 1;
    NEED(device_exists(device), INVALID_CONTEXT);
    status = context_reset((unsigned)device);
    bool is_current = stack.depth && device_current() == (unsigned)device;
    if (!status && is_current) pop();
    ANSWER(status);
}

// "If CUcontext is NULL then … an unbound … thread": what lies below becomes current. Else the top is replaced.
EXPORT int cuCtxSetCurrent(void *context) {
    CALL("cuCtxSetCurrent");
    int device = (int)(uint64_t)context - 1;
    if (!context) ANSWER(stack.depth ? pop() : OK);
    NEED(device_exists(device), INVALID_CONTEXT);
    ANSWER(stack.depth ? device_select(device) : push(device));
}

EXPORT int cuCtxSynchronize(void) {
    CALL("cuCtxSynchronize");
    NEED(driver_has_context(), INVALID_CONTEXT);
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
    ANSWER(push(device));
}

EXPORT int cuCtxPopCurrent_v2(void **context) {
    CALL("cuCtxPopCurrent_v2");
    NEED(stack.depth, INVALID_CONTEXT);
    if (context) *context = context_of(device_current());
    ANSWER(pop());
}

EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CALL("cuCtxGetStreamPriorityRange");
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
    int peer = (int)(uint64_t)context - 1;
    NEED(!flags, INVALID_VALUE);
    NEED(device_exists(peer), INVALID_CONTEXT);
    ANSWER(device_enable_peer((unsigned)peer));
}

EXPORT int cuCtxDisablePeerAccess(void *context) {
    CALL("cuCtxDisablePeerAccess");
    int peer = (int)(uint64_t)context - 1;
    NEED(device_exists(peer), INVALID_CONTEXT);
    ANSWER(device_disable_peer((unsigned)peer));
}

// A made-up one, by which devices can be told apart.
static int identify(void *bytes, int device, const char *function) {
    CALL(function);
    NEED(bytes, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    memcpy(bytes, "quiesce device ", 15);
    ((char *)bytes)[15] = (char)('0' + device);
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
