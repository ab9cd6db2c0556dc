#include "kernels/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/call_stack.h"
#include "kernels/checks.h"
#include "kernels/cores.h"
#include "kernels/explore.h"
#include "kernels/grid.h"
#include "kernels/memory_races.h"
#include "kernels/print.h"
#include "kernels/ranges.h"
#include "kernels/rounds.h"
#include "kernels/shared_checks.h"
#include "kernels/uncomputed.h"
#include "kernels/watch.h"
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

void **kernel_call_show(const struct kernel_call *call) {
    unsigned count = call->object->info.parameter_count;
    size_t bytes = call->object->info.parameter_bytes;
    void **shown = malloc(count * sizeof *shown + bytes + 1);
    if (!shown) return NULL;
    unsigned char *values = (unsigned char *)(shown + count);
    for (size_t i = 0; i < bytes; i++) values[i] = (unsigned char)HIDDEN(call->hidden[i]);
    for (unsigned i = 0; i < count; i++) shown[i] = values + call->object->parameters[i].offset;
    return shown;
}

void kernel_call_see_arguments(const struct kernel_call *call, void (*see)(uint64_t address)) {
    uint64_t word;
    for (size_t at = 0; at + sizeof word <= call->object->info.parameter_bytes; at += sizeof word) {
        memcpy(&word, call->hidden + at, sizeof word);
        see(HIDDEN(word));
    }
}

// -- the run ---------------------------------------------------------------------------------------------------------

static enum status status_of(int how) {
    switch (how) {
        case ENDED_BY_ASSERT: return ASSERTED;
        case ENDED_BY_ACCESS: return ILLEGAL_ADDRESS;
        case ENDED_BY_CALLS: return ILLEGAL_ADDRESS;  // so an H200 with CUDA 13.0 answered
        case ENDED_MISALIGNED: return MISALIGNED_ADDRESS;
        case ENDED_BY_USER:
        case ENDED_BY_TIME: return LAUNCH_TIMEOUT;
        case ENDED_BY_ADDRESS: return ILLEGAL_ADDRESS;
        default: return LAUNCH_FAILURE;
    }
}

static const char *reason_of(int how) {
    switch (how) {
        case ENDED_BY_ASSERT: return "ended with a failed assertion";
        case ENDED_BY_ADDRESS: return "used an address at which there is no memory";
        case ENDED_BY_ACCESS: return "used memory that it may not use";
        case ENDED_BY_FREE: return "freed memory that it may not free";
        case ENDED_MISALIGNED: return "used a misaligned address";
        case ENDED_BY_CALLS: return "needs more stack than a thread has (cudaLimitStackSize)";
        case ENDED_BY_STACK: return "calls functions so deep that the stack of this machine is too small";
        case ENDED_BY_TIME: return "was stopped after the time that --kernel-seconds gives it";
        case ENDED_BY_USER: return "was stopped by a signal";
        case ENDED_WAITING: return "can't go on: its threads wait for each other for ever";
        case ENDED_AWAITING:
            return "can't go on: it waits for memory that another stream would have to change, and each launch runs to "
                   "its end before other work";
        case ENDED_CROWDED: return "did not end: more than 1,024 of its blocks wait for blocks that begin later";
        case ENDED_BY_HOST: return "did not compute: the process that computes functions of libraries has failed";
        case ENDED_BY_TRAP: return "ended with a trap";
        default: return "ended with an error";
    }
}

static struct grid_end run(const struct kernel *kernel, struct grid *grid) {
    uint64_t blocks = (uint64_t)grid->blocks[0] * grid->blocks[1] * grid->blocks[2];
    bool looks = blocks > 1 && settings.checks && kernel_is_new(kernel) &&
                 memory_races_begin(kernel->name, blocks, RACES_OF_BLOCKS);
    grid->threads_at_once = looks ? 1 : cores_for(kernel, grid);
    grid->was_long = kernel->was_long;
    shared_checks_begin();
    struct grid_end end = grid_run(grid);
    shared_checks_end();
    if (grid->threads_at_once > 1) kernel_keep_length(kernel, end.was_long);
    if (looks) memory_races_end();
    kernel_count_turns(kernel, end.turns);
    return end;
}

static struct code_places code_of(const struct object *object) {
    return (struct code_places){object->sites, object->site_texts, object->files, object->arrays};
}

static void run_muted(const struct grid *grid, const struct object *object) {
    struct code_places before = running_code;
    running_code = code_of(object);
    checks_mute(true);
    print_mute(true);
    shared_checks_begin();
    grid_run(grid);
    shared_checks_end();
    print_mute(false);
    checks_mute(false);
    running_code = before;
}

// Finds out where a block is that was stopped.
static struct round_place place_of_rounds(const struct kernel *kernel, const struct grid *grid,
                                          const struct grid_end *end, struct object *traced) {
    uint64_t key;
    struct source source;
    char reason[OBJECT_REASON_BYTES] = "";
    const void *stub = (const void *)kernel->key;
    rounds_begin();
    if (kernel_source(kernel->key, stub, &key, &source) &&
        kernel_load(traced, &source, kernel->device, OBJECT_TRACED, reason)) {
        struct grid again = *grid;
        again.object = traced;
        again.only = end->block;
        again.threads_at_once = 1;
        again.order = order_numbered(0, 0, grid->blocks, grid->threads);
        run_muted(&again, traced);
    }
    return rounds_end();
}

// The thread of a stopped kernel that ran, and where it is, in words that follow its block.
static void name_thread(const struct kernel *kernel, const struct grid *grid, const struct grid_end *end, char *to,
                        size_t bytes) {
    const struct waiting_place *waited = &end->waiting.places[0];
    struct object traced = {0};
    struct round_place at = {0};
    const struct object *object = &traced;
    if (settings.checks && end->how != ENDED_AWAITING) at = place_of_rounds(kernel, grid, end, &traced);
    if (!at.is_there) {  // it waits for another block, or the memory is no longer as it was
        at = (struct round_place){waited->is_there, waited->site, waited->thread};
        object = grid->object;
    }
    char place[PLACE_WORDS_BYTES] = "";
    uint32_t index[3];
    *to = 0;
    if (at.is_there) {
        const struct code_places code = code_of(object);
        place_in_words(&code, at.site, place);
        thread_index(at.thread, grid->threads, index);
        snprintf(to, bytes, ", thread (%u, %u, %u)%s%s", index[0], index[1], index[2], *place ? ", at " : "", place);
    }
    object_unload(&traced);
}

static void tell(const struct kernel *kernel, const struct grid *grid, const struct grid_end *end) {
    char address[32] = "", thread[PLACE_WORDS_BYTES + 64] = "", how[PLACE_WORDS_BYTES + 512];
    if (end->how == ENDED_BY_USER || end->how == ENDED_BY_TIME || end->how == ENDED_AWAITING)
        name_thread(kernel, grid, end, thread, sizeof thread);
    if (end->how == ENDED_BY_ADDRESS && end->address) snprintf(address, sizeof address, ": 0x%" PRIx64, end->address);
    snprintf(how, sizeof how, "%s%s, in block (%u, %u, %u)%s", reason_of(end->how), address, end->block[0],
             end->block[1], end->block[2], thread);
    unfinished_note(kernel->name, how);
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
                                          .code = code_of(object),
                                          .stack = call->launcher.stack,
                                          .function = call->launcher.function,
                                          .stream = call->launcher.stream,
                                          .number = number,
                                          .test = call->launcher.test});
    ranges_begin();
    call_stack_begin(kernel->device);
    struct grid_end end = settings.orders ? explore(kernel, &grid) : run(kernel, &grid);
    if (end.how == ENDED_WAITING) checks_see_waiting(&end.waiting);
    checks_end(end.how == ENDED_BY_USER || end.how == ENDED_BY_TIME);
    if (end.no_memory) {
        unfinished_note(kernel->name, "did not run: this machine has no memory for its threads");
        context_break(kernel->device, LAUNCH_FAILURE);
    } else if (end.how) {
        tell(kernel, &grid, &end);
        context_break(kernel->device, status_of(end.how));
    }
    watch_die();
}
