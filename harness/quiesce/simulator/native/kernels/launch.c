#include "kernels/launch.h"

#include <string.h>

#include "code/source.h"
#include "kernels/initial.h"
#include "kernels/needs.h"
#include "kernels/request.h"
#include "kernels/uncomputed.h"
#include "ledger/current_test.h"
#include "ledger/failure.h"
#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "order/context.h"
#include "order/guard.h"
#include "order/transfer.h"

void launches_open(void) {
    upcalls.kernels = (struct kernels_upcalls){kernel_call_keep, kernel_call_drop, kernel_call_run,
                                               kernel_call_see_arguments, initial_write, request_declarations};
}

void launch_attributes(struct callee *callee, const void *attributes, unsigned count) {
    enum { COOPERATIVE = 2, CLUSTER_DIMENSION = 4 };
    const struct {
        int which, padding;
        unsigned value[16];
    } *each = attributes;
    for (unsigned i = 0; each && i < count; i++) {
        const unsigned *value = each[i].value;
        if (each[i].which == COOPERATIVE && value[0]) callee->is_cooperative = true;
        if (each[i].which == CLUSTER_DIMENSION && value[0] * value[1] * value[2] > 1) callee->has_clusters = true;
    }
}

// Of a function that nobody registered nothing is known: it is ordered, and computes nothing.
static enum status prepare(const struct stream *stream, struct dim3 grid, struct dim3 block,
                           const struct callee *callee, struct kernel_call **call) {
    uint64_t key;
    struct source source;
    *call = NULL;
    if (!settings.kernels || settings.flavour != FLAVOUR_CUDA || !callee) return OK;
    if (!kernel_source(callee->function, callee->stub, &key, &source)) return OK;
    const struct kernel *kernel = kernel_find(key, &source, stream->device);
    if (!kernel) return OK;  // which was said
    if (callee->has_clusters) {
        uncomputed_note(kernel->name, "it was launched in clusters of blocks, which are not executed");
        return OK;
    }
    if (kernel->object.info.parameter_count && !callee->arguments.pointers && !callee->arguments.extra)
        return INVALID_VALUE;
    uint32_t threads_max = kernel->object.info.threads_max;
    if (threads_max && (uint64_t)block.x * block.y * block.z > threads_max) return INVALID_VALUE;
    struct dimensions dimensions = {{grid.x, grid.y, grid.z},
                                    {block.x, block.y, block.z},
                                    (uint32_t)callee->shared_bytes,
                                    callee->is_cooperative};
    kernel_turn(kernel, &source);
    struct launcher launcher = {stack_of_call(), ledger_function(), stream->serial, current_test()};
    uint64_t threads = (uint64_t)grid.x * grid.y * grid.z * block.x * block.y * block.z;
    const struct object *object = kernel_object(kernel, &source, threads);
    *call = kernel_call_new(kernel, object, &dimensions, &callee->arguments, &launcher);
    return *call ? OK : OUT_OF_MEMORY;
}

// "The total number of blocks launched cannot exceed" how many run at the same time (cuLaunchCooperativeKernel).
static enum status require_room(struct dim3 grid, struct dim3 block, const struct callee *callee) {
    int blocks = 0, threads = (int)(block.x * block.y * block.z);
    enum status status = needs_blocks(callee->function, callee->stub, threads, callee->shared_bytes, &blocks);
    if (status) return status;
    return (uint64_t)grid.x * grid.y * grid.z > occupancy_whole(blocks) ? COOPERATIVE_TOO_LARGE : OK;
}

// What a device refuses whatever the kernel is. CUDA's runtime had an error of its own for it until version 12.
static enum status require_dimensions(struct dim3 grid, struct dim3 block) {
    bool is_some = grid.x && grid.y && grid.z && block.x && block.y && block.z;
    bool fits = grid.x <= GRID_X_MAX && grid.y <= GRID_Y_MAX && grid.z <= GRID_Z_MAX && block.x <= BLOCK_X_MAX &&
                block.y <= BLOCK_Y_MAX && block.z <= BLOCK_Z_MAX && block.x * block.y * block.z <= BLOCK_THREADS_MAX;
    if (is_some && fits) return OK;
    bool is_value = settings.flavour == FLAVOUR_CUDA ? settings.version >= 13 : !is_some;
    return is_value ? INVALID_VALUE : INVALID_CONFIGURATION;
}

// Puts work that was prepared on a stream, and drops its call.
static enum status launch_work(struct stream *stream, struct work *work) {
    work->launch.number = ledger->ring_count;
    if (!stream->capture) transfer_observe(stream, work, false);
    guard_launching(stream, work->launch.number);
    enum status status = stream_enqueue(stream, work);
    guard_launching(NULL, 0);
    if (!status) guard_set(stream, work);
    kernel_call_drop(work->launch.call);
    return status;
}

enum status launch_of_library(struct stream *stream, const struct kernel *kernel, const struct dimensions *dimensions,
                              void **pointers) {
    enum status status = failure_meet(CALL_LAUNCH);
    struct work work = {.kind = WORK_LAUNCH,
                        .launch = {.fault = context_is_sticky(status) ? status : OK, .device = stream->device}};
    memcpy(work.launch.grid, dimensions->grid, sizeof work.launch.grid);
    memcpy(work.launch.block, dimensions->block, sizeof work.launch.block);
    if (status && !work.launch.fault) return status;
    struct launcher launcher = {stack_of_call(), ledger_function(), stream->serial, current_test()};
    struct arguments arguments = {pointers, NULL};
    if (!status) {
        work.launch.call = kernel_call_new(kernel, &kernel->object, dimensions, &arguments, &launcher);
        if (!work.launch.call) return OUT_OF_MEMORY;
    }
    return launch_work(stream, &work);
}

enum status launch(struct stream *stream, struct dim3 grid, struct dim3 block, const struct callee *callee) {
    enum status status = require_dimensions(grid, block);
    if (status) return status;
    if (callee && callee->is_cooperative) status = require_room(grid, block, callee);
    if (status) return status;
    bool asks = callee && callee->shared_bytes && settings.flavour == FLAVOUR_CUDA;
    if (asks && callee->shared_bytes > (uint64_t)needs_of(callee->function, callee->stub).dynamic_bytes)
        return INVALID_VALUE;
    status = failure_meet(CALL_LAUNCH);
    struct work work = {.kind = WORK_LAUNCH,
                        .launch = {.fault = context_is_sticky(status) ? status : OK,
                                   .device = stream->device,
                                   .function = !callee ? 0 : callee->stub ? (uint64_t)callee->stub : callee->function,
                                   .grid = {grid.x, grid.y, grid.z},
                                   .block = {block.x, block.y, block.z},
                                   .shared_bytes = callee ? (uint32_t)callee->shared_bytes : 0}};
    if (status && !work.launch.fault) return status;
    status = status ? OK : prepare(stream, grid, block, callee, &work.launch.call);
    if (status) return status;
    return launch_work(stream, &work);
}

enum status launch_by_runtime(struct stream *stream, struct dim3 grid, struct dim3 block, const struct callee *callee) {
    bool is_elsewhere = settings.flavour == FLAVOUR_CUDA && stream->device != device_current();
    return is_elsewhere ? INVALID_HANDLE : launch(stream, grid, block, callee);
}

enum status launch_by_driver(struct stream *stream, struct dim3 grid, struct dim3 block, const struct callee *callee) {
    enum status status = launch(stream, grid, block, callee);
    return status == INVALID_CONFIGURATION ? INVALID_VALUE : status;
}
