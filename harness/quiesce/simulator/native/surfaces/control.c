#include "surfaces/control.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "kernels/touched.h"
#include "ledger/failure.h"
#include "ledger/ledger.h"
#include "ledger/refusals.h"
#include "ledger/stack_log.h"
#include "ledger/unsimulated.h"
#include "lifetime/runtime.h"
#include "machine/device.h"
#include "machine/own_heap.h"
#include "memory/places.h"
#include "order/stream.h"
#include "order/stream_handles.h"
#include "reach/reach.h"

int quiesce_stall(void *handle) {
    enum status status = runtime_enter("quiesce_stall");
    if (status) return runtime_leave_to_driver(status);
    struct stream *stream = stream_find((uint64_t)handle, device_current(), false);
    return runtime_leave_to_driver(stream ? stream_stall(stream) : INVALID_HANDLE);
}

int quiesce_release(uint64_t serial) {
    enum status status = runtime_enter("quiesce_release");
    if (!status) stream_release(serial);
    return runtime_leave_to_driver(status);
}

int quiesce_launch(void *handle, unsigned count, const uint64_t *addresses, const uint64_t *sizes_bytes,
                   const unsigned char *writes) {
    enum status status = runtime_enter("quiesce_launch");
    if (status) return runtime_leave_to_driver(status);
    struct stream *stream = stream_find((uint64_t)handle, device_current(), false);
    if (!stream) return runtime_leave_to_driver(INVALID_HANDLE);
    status = failure_meet(CALL_LAUNCH);
    for (unsigned i = 0; i < count && !status; i++) status = memory_check(addresses[i], sizes_bytes[i]);
    if (!status) status = stream_enqueue(stream, &(struct work){.kind = WORK_LAUNCH});
    if (status) return runtime_leave_to_driver(status);
    ledger->launches++;
    for (unsigned i = 0; i < count && !stream->capture; i++)
        ledger_see((struct observation){.seen = writes[i] ? SEEN_WRITTEN : SEEN_READ,
                                        .device = (uint16_t)stream->device,
                                        .stream = stream->serial,
                                        .address = addresses[i],
                                        .size_bytes = sizes_bytes[i]});
    return runtime_leave_to_driver(OK);
}

int quiesce_fail(int kind, uint64_t nth, int answer) {
    enum status status = runtime_enter("quiesce_fail");
    if (!status && (kind < 0 || kind >= CALL_KINDS || !nth)) status = INVALID_VALUE;
    if (!status) failure_arm_one((enum call_kind)kind, nth, answer);
    return runtime_leave_to_driver(status);
}

int quiesce_mark(const char *name) {
    enum status status = runtime_enter("quiesce_mark");
    if (status) return runtime_leave_to_driver(status);
    struct observation mark = {.seen = SEEN_MARK, .function = ledger_name(name)};
    for (unsigned thing = THING_DEVICE; thing < THINGS; thing++) {
        if (thing == THING_HEAP) continue;
        uint64_t *counted = thing <= THING_REGISTERED || thing == THING_PHYSICAL ? &mark.address : &mark.other;
        *counted += ledger->live[thing].count;
        mark.size_bytes += ledger->live[thing].bytes;
    }
    ledger_see(mark);
    return runtime_leave_to_driver(OK);
}

int quiesce_look(void) {
    enum status status = runtime_enter(NULL);
    if (!status) {
        reach_forget();
        reach_mark();
    }
    return runtime_leave_to_driver(status);
}

const void *quiesce_ledger(void) { return runtime_has_machine() ? ledger : NULL; }
const void *quiesce_stacks(void) { return runtime_has_machine() ? stack_log() : NULL; }
const void *quiesce_touched(void) { return runtime_has_machine() ? touched_log() : NULL; }
uint64_t quiesce_own_heap(void) { return own_heap_bytes(); }

void quiesce_not_simulated(const char *function, const void *caller) {
    enum status status = runtime_enter(NULL);
    if (!status) ledger_see((struct observation){.seen = SEEN_NOT_SIMULATED, .function = ledger_name(function)});
    // of the libraries that are stubbed, only the runtime itself remembers an error (hipblasCreate is none of it)
    size_t prefix = strncmp(function, "cuda", 4) == 0 ? 4 : strncmp(function, "hip", 3) == 0 ? 3 : 0;
    bool runtimes = prefix && isupper((unsigned char)function[prefix]);
    if (runtimes && !status)
        runtime_leave(NOT_SUPPORTED);
    else
        runtime_leave_to_driver(status);
    if (!status) refusal_note(REFUSAL_NOT_SIMULATED, function, NOT_SUPPORTED, caller);
}

int quiesce_answer_not_simulated(const char *function) {
    const void *caller = __builtin_return_address(0);
    quiesce_not_simulated(function, caller);
    if (unsimulated_is_new(function))
        fprintf(stderr, "quiesce: %s is not simulated: it returns %d; leave out what calls it, or run it on a GPU\n",
                function, NOT_SUPPORTED);
    return NOT_SUPPORTED;
}
