// The front end that answers as libcuda: callbacks for the driver's log of errors (cuda.h, "Error Log Management").
//
// The simulated driver writes no messages, so that a callback that is registered is never called.

#define LIBCUDA
#include "surfaces/calls.h"

enum { CALLBACKS_MAX = 64 };
static bool registered[CALLBACKS_MAX];  // by handle, an address in here

EXPORT int cuLogsRegisterCallback(void *callback, void *data, void **handle) {
    CALL("cuLogsRegisterCallback");
    (void)data;
    NEED(callback, INVALID_VALUE);
    for (unsigned i = 0; i < CALLBACKS_MAX; i++) {
        if (registered[i]) continue;
        registered[i] = true;
        if (handle) *handle = &registered[i];  // "optional location to store the callback handle"
        ANSWER(OK);
    }
    ANSWER(OUT_OF_MEMORY);
}

EXPORT int cuLogsUnregisterCallback(void *handle) {
    CALL("cuLogsUnregisterCallback");
    for (unsigned i = 0; i < CALLBACKS_MAX; i++)
        if (handle == &registered[i] && registered[i]) {
            registered[i] = false;
            ANSWER(OK);
        }
    ANSWER(INVALID_VALUE);
}
