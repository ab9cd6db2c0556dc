#include "order/driver_context.h"

#include <string.h>

#include "machine/settings.h"
#include "order/stream_handles.h"

enum { DEVICE_BITS = 3, DEPTH_MAX = 21 };  // a loader has little room for what each thread has of its own

_Static_assert(DEVICES_MAX <= 1 << DEVICE_BITS && DEPTH_MAX * DEVICE_BITS < 64, "a stack of devices fits a word");

_Thread_local struct context_stack context_stack;
__attribute__((visibility("default"), used)) _Thread_local bool quiesce_zero_is_own;
bool driver_initialized;
unsigned driver_usages[DEVICES_MAX];

void driver_open(void) {
    context_stack.depth = 0;
    driver_initialized = false;
    memset(driver_usages, 0, sizeof driver_usages);
}

enum status driver_push(int device) {
    if (context_stack.depth == DEPTH_MAX) return OUT_OF_MEMORY;
    unsigned before = device_current();
    enum status status = device_select(device);
    if (status) return status;
    context_stack.before = context_stack.before << DEVICE_BITS | before;
    context_stack.depth++;
    return OK;
}

enum status driver_pop(void) {
    int before = context_stack.before & ((1 << DEVICE_BITS) - 1);
    context_stack.before >>= DEVICE_BITS;
    context_stack.depth--;
    return device_select(before);
}

enum status driver_stream(uint64_t handle, struct stream **stream) {
    enum { PER_THREAD = 2 };  // CU_STREAM_LEGACY is 1, and 0 one of both
    if (handle <= PER_THREAD && !driver_has_context()) return INVALID_CONTEXT;
    *stream = stream_find(handle, device_current(), quiesce_zero_is_own);
    return *stream ? OK : INVALID_HANDLE;
}
