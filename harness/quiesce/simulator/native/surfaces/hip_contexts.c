// The front end that answers as libamdhip64: contexts, as on NVIDIA's devices.
//
// To ROCm a context is a device, whoever makes it and however often: none is ever destroyed, and neither a release nor
// a reset of a primary one gives anything back (ROCm/clr, hipamd/src/hip_context.cpp).

#include "surfaces/calls.h"

EXPORT int hipDeviceGet(int *device, int ordinal) {
    CALL("hipDeviceGet");
    NEED(device, INVALID_VALUE);
    NEED(device_exists(ordinal), INVALID_DEVICE);
    *device = ordinal;
    ANSWER(OK);
}

// -- primary contexts ------------------------------------------------------------------------------------------------

EXPORT int hipDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    CALL("hipDevicePrimaryCtxGetState");
    NEED(device_exists(device), INVALID_DEVICE);
    if (flags) *flags = 0;
    if (active) *active = ledger->made > 0;
    ANSWER(OK);
}

EXPORT int hipDevicePrimaryCtxRetain(void **context, int device) {
    CALL("hipDevicePrimaryCtxRetain");
    NEED(device_exists(device), INVALID_DEVICE);
    NEED(context, INVALID_VALUE);
    *context = driver_handle((unsigned)device);
    ANSWER(OK);
}

EXPORT int hipDevicePrimaryCtxRelease(int device) {
    CALL("hipDevicePrimaryCtxRelease");
    ANSWER(device_exists(device) ? OK : INVALID_DEVICE);
}

EXPORT int hipDevicePrimaryCtxReset(int device) {
    CALL("hipDevicePrimaryCtxReset");
    (void)device;
    ANSWER(OK);
}

EXPORT int hipDevicePrimaryCtxSetFlags(int device, unsigned flags) {
    CALL("hipDevicePrimaryCtxSetFlags");
    (void)flags;
    ANSWER(device_exists(device) ? CONTEXT_IN_USE : INVALID_DEVICE);
}

// -- what is current -------------------------------------------------------------------------------------------------

EXPORT int hipCtxCreate(void **context, unsigned flags, int device) {
    CALL("hipCtxCreate");
    (void)flags;  // how the host waits
    NEED(context && device_exists(device), INVALID_VALUE);
    *context = driver_handle((unsigned)device);
    ANSWER(driver_push((unsigned)device));
}

EXPORT int hipCtxDestroy(void *context) {
    CALL("hipCtxDestroy");
    unsigned number;
    NEED(context && !driver_find(context, &number), INVALID_VALUE);
    if (driver_has_context() && device_context() == number) driver_pop();
    ANSWER(OK);
}

EXPORT int hipCtxSetCurrent(void *context) {
    CALL("hipCtxSetCurrent");
    if (driver_has_context()) driver_pop();
    unsigned number;
    if (context) status = driver_find(context, &number);
    if (context && !status) status = driver_push(number);
    ANSWER(status);
}

EXPORT int hipCtxGetCurrent(void **context) {
    CALL("hipCtxGetCurrent");
    NEED(context, INVALID_VALUE);
    *context = driver_handle(device_current());
    ANSWER(OK);
}

EXPORT int hipCtxPushCurrent(void *context) {
    CALL("hipCtxPushCurrent");
    unsigned number;
    NEED(context && !driver_find(context, &number), INVALID_CONTEXT);
    ANSWER(driver_push(number));
}

EXPORT int hipCtxPopCurrent(void **context) {
    CALL("hipCtxPopCurrent");
    NEED(driver_has_context(), INVALID_CONTEXT);
    if (context) *context = driver_handle(device_context());
    driver_pop();
    ANSWER(OK);
}

EXPORT int hipCtxGetDevice(int *device) {
    CALL("hipCtxGetDevice");
    NEED(device, INVALID_VALUE);
    *device = (int)device_current();
    ANSWER(OK);
}
