#include "order/context.h"

#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/settings.h"

static enum status broken[DEVICES_MAX];
bool contexts_broken;

bool context_is_sticky(enum status status) {
    return status == ILLEGAL_ADDRESS || status == LAUNCH_TIMEOUT || status == ASSERTED ||
           (status >= HARDWARE_STACK_ERROR && status <= LAUNCH_FAILURE);
}

void context_break(unsigned device, enum status status) {
    if (broken[device]) return;
    broken[device] = status;
    contexts_broken = true;
    ledger_see_wrong((struct observation){.seen = SEEN_CONTEXT_BROKEN,
                                    .stack = stack_of_call(),
                                    .device = (uint16_t)device,
                                    .other = (uint64_t)status});
}

enum status context_give_up(unsigned device) {
    broken[device] = DEVICES_UNAVAILABLE;
    return OK;
}

enum status context_error_of_current(void) { return broken[device_current()]; }

enum status context_note(enum status status) {
    if (context_is_sticky(status)) context_break(device_current(), status);
    return status ? status : context_error();
}

void contexts_open(void) {
    for (unsigned i = 0; i < DEVICES_MAX; i++) broken[i] = OK;
    contexts_broken = false;
}
