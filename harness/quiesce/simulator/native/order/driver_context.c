#include "order/driver_context.h"

#include <string.h>

#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "order/stream_handles.h"

static struct context {
    uint64_t handle;  // of one that was created; 0: the number is free
    uint64_t serial;  // in the ledger, for as long as its number is taken
    uint32_t live;    // its entry there, 0 where it has none
    uint32_t usages;  // how often it was retained
    uint32_t holders; // how often threads have it on their stacks
    uint16_t device;
    bool is_alive;
} contexts[CONTEXTS_MAX];

_Thread_local struct context_stack context_stack;
__attribute__((visibility("default"), used)) _Thread_local bool quiesce_zero_is_own;
bool driver_initialized, driver_context_died, driver_is_runtimes[DEVICES_MAX];
uint64_t driver_contexts_made;

void driver_open(void) {
    context_stack.depth = 0;
    driver_initialized = driver_context_died = false;
    driver_contexts_made = 0;
    memset(contexts, 0, sizeof contexts);
    memset(driver_is_runtimes, 0, sizeof driver_is_runtimes);
    for (unsigned i = 0; i < DEVICES_MAX; i++) contexts[i].device = (uint16_t)i;
}

// -- which there are -------------------------------------------------------------------------------------------------

static bool is_primary(unsigned number) { return number < DEVICES_MAX; }

// The handle of a device's primary context is the device's number and one.
enum status driver_find(const void *handle, unsigned *number) {
    uint64_t primary = (uint64_t)handle - 1;
    if (primary < DEVICES_MAX && device_exists((int)primary)) {
        *number = (unsigned)primary;
        return OK;
    }
    const struct context *found = handle_find(THING_CONTEXT, (uint64_t)handle);
    if (!found) return INVALID_CONTEXT;
    *number = (unsigned)(found - contexts);
    return OK;
}

void *driver_handle(unsigned number) {
    return (void *)(is_primary(number) ? (uint64_t)number + 1 : contexts[number].handle);
}

unsigned driver_device(unsigned number) { return contexts[number].device; }

bool driver_is_alive(unsigned number) { return contexts[number].is_alive; }

bool driver_is_alone(unsigned number) {
    for (unsigned i = 0; i < CONTEXTS_MAX; i++)
        if (i != number && contexts[i].is_alive && contexts[i].device == contexts[number].device) return false;
    return true;
}

unsigned driver_context_of(uint64_t handle, unsigned device) {
    uint32_t live = handle_live_at(handle);
    unsigned number = live ? ledger_live(live)->context : device_context();
    return is_primary(number) || contexts[number].device != device ? device : number;
}

enum status driver_create(unsigned device, unsigned *number) {
    for (unsigned i = DEVICES_MAX; i < CONTEXTS_MAX; i++) {
        struct context *context = &contexts[i];
        if (context->handle) continue;
        uint64_t serial, handle = handle_make(THING_CONTEXT, context, device, &serial, false);
        if (!handle) return OUT_OF_MEMORY;
        *context = (struct context){handle, serial, handle_live_at(handle), 1, 0, (uint16_t)device, true};
        driver_contexts_made++;
        *number = i;
        return OK;
    }
    return OUT_OF_MEMORY;
}

// That of the runtime is no thing of the program's.
static void enter_primary(struct context *context) {
    uint64_t number = (uint64_t)(context - contexts);
    context->live = ledger_add((struct live){.address = number + 1,
                                             .stream = 1,  // a device knows its primary context
                                             .thing = THING_CONTEXT,
                                             .device = (uint16_t)number,
                                             .context = (uint8_t)number});
    if (!context->live) return;
    driver_contexts_made++;
    context->serial = ledger_live(context->live)->serial;
    ledger_live(context->live)->stack = stack_of_call();
    ledger_see((struct observation){.seen = SEEN_CREATED,
                                    .thing = THING_CONTEXT,
                                    .device = (uint16_t)number,
                                    .stack = stack_of_call(),
                                    .object = context->serial});
}

static void leave_primary(struct context *context) {
    if (!context->live) return;
    ledger_see((struct observation){.seen = SEEN_DESTROYED, .thing = THING_CONTEXT, .object = context->serial});
    ledger_remove(context->live);
    context->live = 0;
}

void driver_retain(unsigned number) {
    struct context *context = &contexts[number];
    context->usages++;
    context->is_alive = true;
    if (is_primary(number) && !context->live) enter_primary(context);
}

enum status driver_release(unsigned number, bool *is_last) {
    struct context *context = &contexts[number];
    *is_last = false;
    if (!context->usages) return INVALID_CONTEXT;
    context->usages--;
    *is_last = !context->usages;
    bool is_runtimes_alone = is_primary(number) && context->usages == 1 && driver_is_runtimes[number];
    if (is_primary(number) && (*is_last || is_runtimes_alone)) leave_primary(context);
    return OK;
}

void driver_retain_for_runtime(unsigned device) {
    contexts[device].usages++;
    contexts[device].is_alive = driver_is_runtimes[device] = true;
}

static void forget(struct context *context) {
    if (!is_primary((unsigned)(context - contexts)) && !context->is_alive && !context->holders) context->handle = 0;
}

void driver_end(unsigned number) {
    struct context *context = &contexts[number];
    if (!is_primary(number) && context->is_alive) handle_drop(context->handle);
    if (context->is_alive) driver_context_died = true;
    context->is_alive = false;
    if (is_primary(number)) driver_is_runtimes[number] = false;
    forget(context);
}

// -- which is current ------------------------------------------------------------------------------------------------

static void hold(unsigned number, int more) {
    struct context *context = &contexts[number];
    if (is_primary(number)) return;
    if (more > 0 || context->holders) context->holders += (uint32_t)more;
    if (context->is_alive) ledger_live(context->live)->stream = context->holders;
    forget(context);
}

enum status driver_push(unsigned number) {
    if (context_stack.depth == CONTEXT_DEPTH_MAX) return OUT_OF_MEMORY;
    context_stack.before[context_stack.depth++] = (uint8_t)device_context();
    hold(number, 1);
    device_select_context(number, contexts[number].device);
    return OK;
}

void driver_set(unsigned number) {
    hold(number, 1);
    hold(device_context(), -1);
    device_select_context(number, contexts[number].device);
}

void driver_pop(void) {
    unsigned before = context_stack.before[--context_stack.depth];
    hold(device_context(), -1);
    device_select_context(before, contexts[before].device);
}

enum status driver_context_gone(void) {
    const struct context *context = &contexts[device_context()];
    if (context->is_alive) return OK;
    if (strncmp(ledger_entered(), "cuCtx", 5))
        ledger_see_wrong((struct observation){.seen = SEEN_DEAD_HANDLE,
                                              .thing = THING_CONTEXT,
                                              .stack = stack_of_call(),
                                              .address = (uint64_t)driver_handle(device_context()),
                                              .object = context->serial});
    return CONTEXT_IS_DESTROYED;
}

enum status driver_stream(uint64_t handle, struct stream **stream) {
    enum { PER_THREAD = 2 };  // CU_STREAM_LEGACY is 1, and 0 one of both
    enum status status = handle <= PER_THREAD ? driver_context_needed() : OK;
    if (status) return status;
    *stream = stream_find(handle, device_current(), quiesce_zero_is_own);
    return *stream ? OK : INVALID_HANDLE;
}
