#include "lifetime/reset.h"

#include "code/link.h"
#include "code/module.h"
#include "code/symbol.h"
#include "kernels/device_heap.h"
#include "kernels/needs.h"
#include "ledger/handle.h"
#include "machine/device.h"
#include "machine/upcalls.h"
#include "memory/array.h"
#include "memory/imported.h"
#include "memory/memory.h"
#include "memory/pool.h"
#include "memory/registered.h"
#include "memory/texture.h"
#include "memory/virtual.h"
#include "order/capture.h"
#include "order/driver_context.h"
#include "order/event.h"
#include "order/graph.h"
#include "order/stream.h"
#include "order/stream_handles.h"

void context_destroy(uint64_t handle, enum thing thing) {
    void *object = handle_find(thing, handle);
    switch (thing) {
        case THING_STREAM: stream_destroy(object); break;
        case THING_EVENT: event_destroy(object); break;
        case THING_GRAPH: graph_destroy(handle); break;
        case THING_GRAPH_EXEC: graph_destroy_executable(handle); break;
        case THING_MODULE: module_unload(handle); break;
        case THING_LINKER: link_destroy(handle); break;
        case THING_TEXTURE: texture_destroy(handle); break;
        case THING_POOL: pool_destroy(object); break;
        case THING_BLAS_HANDLE:
        case THING_SPARSE_HANDLE:
        case THING_SOLVER_HANDLE:
        case THING_FFT_PLAN:
        case THING_GENERATOR:
        case THING_DNN_HANDLE:
        case THING_COMMUNICATOR: upcalls.libraries.end_object(object); break;
        default: break;
    }
}

// A client may make memory of one device in the primary context of another one.
static bool is_of(const struct live *entry, unsigned number) {
    if (number >= DEVICES_MAX) return entry->context == number;
    return entry->device == number && entry->context < DEVICES_MAX;
}

enum status context_reset(unsigned number) {
    unsigned device = driver_device(number);
    enum status status = capture_forbid_device(device);
    if (!status) status = stream_finish_device(device);
    if (status) return status;
    for (uint32_t live = 1; live < ledger->live_high; live++) {
        const struct live *entry = ledger_live(live);
        if (!entry->serial || !is_of(entry, number) || entry->part) continue;
        enum thing thing = (enum thing)entry->thing;
        if (thing == THING_REGISTERED) memory_unregister(entry->address);
        if (thing >= THING_REGISTERED) continue;
        if (array_find(entry->address))
            array_free(entry->address);
        else
            memory_free(thing, thing, entry->address);
    }
    bool is_alone = driver_is_alone(number);
    if (is_alone) imported_reset(device);
    if (is_alone) device_heap_reset(device);
    if (is_alone) symbols_reset(device);
    if (is_alone) virtual_reset(device);
    enum thing thing;
    for (uint64_t handle = 0; (handle = handle_next(handle, &thing));) {
        uint32_t live = handle_live_at(handle);
        if (live && is_of(ledger_live(live), number)) context_destroy(handle, thing);
    }
    if (is_alone) device_forget(device);
    if (is_alone) needs_forget(device);
    return OK;
}
