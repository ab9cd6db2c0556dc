#include "kernels/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/checks.h"
#include "kernels/explore.h"
#include "kernels/grid.h"
#include "kernels/memory_races.h"
#include "kernels/ranges.h"
#include "kernels/shared_checks.h"
#include "kernels/uncomputed.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "memory/shadow.h"
#include "order/context.h"

enum { FIRST_SEEDED = 2 };  // of the orders that come from the seed

// The addresses among its arguments are no sign that a client still knows a block: they are kept hidden.
struct kernel_call {
    unsigned references;
    const struct kernel *kernel;
    const struct object *object;
    struct dimensions dimensions;
    struct launcher launcher;
    unsigned char hidden[];
};

static void copy_arguments(const struct object *object, const struct arguments *arguments, unsigned char *to) {
    enum { END, BUFFER, BUFFER_SIZE };  // CU_LAUNCH_PARAM_…
    if (arguments->pointers) {
        for (unsigned i = 0; i < object->info.parameter_count; i++) {
            struct kernel_parameter each = object->parameters[i];
            memcpy(to + each.offset, arguments->pointers[i], each.bytes);
        }
        return;
    }
    const void *buffer = NULL;
    const size_t *bytes = NULL;
    for (void **each = arguments->extra; each && (uintptr_t)each[0] != END; each += 2) {
        if ((uintptr_t)each[0] == BUFFER) buffer = each[1];
        if ((uintptr_t)each[0] == BUFFER_SIZE) bytes = each[1];
    }
    size_t room = object->info.parameter_bytes;
    if (buffer && bytes) memcpy(to, buffer, *bytes < room ? *bytes : room);
}

struct kernel_call *kernel_call_new(const struct kernel *kernel, const struct object *object,
                                    const struct dimensions *dimensions, const struct arguments *arguments,
                                    const struct launcher *launcher) {
    size_t bytes = object->info.parameter_bytes;
    struct kernel_call *call = calloc(1, sizeof *call + bytes);
    if (!call) return NULL;
    call->references = 1;
    call->kernel = kernel;
    call->object = object;
    call->dimensions = *dimensions;
    call->launcher = *launcher;
    copy_arguments(object, arguments, call->hidden);
    for (size_t i = 0; i < bytes; i++) call->hidden[i] = (unsigned char)HIDDEN(call->hidden[i]);
    return call;
}

void kernel_call_keep(struct kernel_call *call) {
    if (call) call->references++;
}

void kernel_call_drop(struct kernel_call *call) {
    if (call && !--call->references) free(call);
}

// -- the run ---------------------------------------------------------------------------------------------------------

static enum status status_of(int how) {
    switch (how) {
        case ENDED_BY_ASSERT: return ASSERTED;
        case ENDED_BY_ACCESS: return ILLEGAL_ADDRESS;
        case ENDED_MISALIGNED: return MISALIGNED_ADDRESS;
        case ENDED_BY_USER: return LAUNCH_TIMEOUT;
        case ENDED_BY_ADDRESS: return ILLEGAL_ADDRESS;
        default: return LAUNCH_FAILURE;
    }
}

static const char *reason_of(int how) {
    switch (how) {
        case ENDED_BY_ASSERT: return "ended with a failed assertion";
        case ENDED_BY_ADDRESS: return "used an address at which there is no memory";
        case ENDED_BY_ACCESS: return "used memory that it may not use";
        case ENDED_MISALIGNED: return "used a misaligned address";
        case ENDED_BY_USER: return "was stopped by Ctrl-C";
        case ENDED_WAITING: return "can't go on: threads of a block wait for each other for ever";
        case ENDED_BY_TRAP: return "ended with a trap";
        default: return "ended with an error";
    }
}

static void tell(const struct kernel *kernel, const struct grid_end *end) {
    char address[32] = "", how[256];
    if (end->how == ENDED_BY_ADDRESS && end->address) snprintf(address, sizeof address, ": 0x%" PRIx64, end->address);
    snprintf(how, sizeof how, "%s%s, in block (%u, %u, %u)", reason_of(end->how), address, end->block[0],
             end->block[1], end->block[2]);
    unfinished_note(kernel->name, how);
}

static struct grid_end run(const struct kernel *kernel, const struct grid *grid) {
    uint64_t blocks = (uint64_t)grid->blocks[0] * grid->blocks[1] * grid->blocks[2];
    bool looks = blocks > 1 && settings.checks && kernel_is_new(kernel) &&
                 memory_races_begin(kernel->name, blocks, RACES_OF_BLOCKS);
    shared_checks_begin();
    struct grid_end end = grid_run(grid);
    shared_checks_end();
    if (looks) memory_races_end();
    return end;
}

void kernel_call_run(const struct kernel_call *call, uint64_t number) {
    const struct kernel *kernel = call->kernel;
    const struct object *object = call->object;
    struct grid grid = {.object = object,
                        .name = kernel->name,
                        .dynamic_shared_bytes = call->dimensions.shared_bytes,
                        .is_cooperative = call->dimensions.is_cooperative,
                        .touched = shadow_touched,
                        .hidden_parameters = call->hidden};
    memcpy(grid.blocks, call->dimensions.grid, sizeof grid.blocks);
    memcpy(grid.threads, call->dimensions.block, sizeof grid.threads);
    bool is_seeded = settings.schedule == SCHEDULE_SEEDED;
    grid.order = order_numbered(is_seeded ? FIRST_SEEDED + number : 0, settings.seed, grid.blocks, grid.threads);
    checks_begin(&(struct checked_launch){.kernel = kernel->name,
                                          .device = kernel->device,
                                          .parameter_bytes = object->info.parameter_bytes,
                                          .frame_bytes = object->info.frame_bytes,
                                          .code = {object->sites, object->site_texts, object->files, object->arrays},
                                          .stack = call->launcher.stack,
                                          .function = call->launcher.function,
                                          .stream = call->launcher.stream,
                                          .number = number,
                                          .test = call->launcher.test});
    ranges_begin();
    struct grid_end end = settings.orders ? explore(kernel, &grid) : run(kernel, &grid);
    if (end.how == ENDED_WAITING) checks_see_waiting(end.block);
    checks_end(end.how == ENDED_BY_USER);
    if (end.no_memory) {
        unfinished_note(kernel->name, "did not run: this machine has no memory for its threads");
        context_break(kernel->device, LAUNCH_FAILURE);
    } else if (end.how) {
        tell(kernel, &end);
        context_break(kernel->device, status_of(end.how));
    }
}
