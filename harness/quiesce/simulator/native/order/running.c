#include "order/running.h"

#include <string.h>

#include "ledger/ledger.h"
#include "ledger/unsimulated.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "memory/blocks.h"
#include "memory/client_memory.h"
#include "memory/memory.h"
#include "memory/places.h"
#include "memory/shadow.h"
#include "order/context.h"
#include "order/graph_memory.h"
#include "order/guard.h"

enum { TOLD_MAX = 64 };

static uint64_t steps;
static uint32_t told[TOLD_MAX], told_count;  // stacks of copies of what nobody has written

void running_open(void) { told_count = 0; }

// "(int32_t)(*addr - value) >= 0 … a cyclic comparison" (CUstreamWaitValue_flags); hipStreamWaitValueGte's is plain.
static bool is_reached(uint64_t held, uint64_t wanted, unsigned value_bytes) {
    if (settings.flavour == FLAVOUR_HIP) return held >= wanted;
    return value_bytes == 4 ? (int32_t)(uint32_t)(held - wanted) >= 0 : (int64_t)(held - wanted) >= 0;
}

static bool value_is_there(const struct value_wait *wait) {
    // The host writes it without any lock of ours.
    uint64_t held = wait->value_bytes == 4 ? __atomic_load_n((const uint32_t *)wait->address, __ATOMIC_ACQUIRE)
                                           : __atomic_load_n((const uint64_t *)wait->address, __ATOMIC_ACQUIRE);
    held &= wait->mask;
    switch (wait->comparison) {
        case COMPARE_GREATER_OR_EQUAL: return is_reached(held, wait->value, wait->value_bytes);
        case COMPARE_EQUAL: return held == wait->value;
        case COMPARE_AND: return (held & wait->value) != 0;
        default: return (~(held | wait->value) & wait->mask) != 0;
    }
}

bool work_is_ready(const struct work *work) {
    switch (work->kind) {
        case WORK_GATE: return work->open;
        case WORK_WAIT: return work->point->complete;
        case WORK_VALUE: return value_is_there(&work->value);
        default: return true;
    }
}

bool work_takes_time(const struct work *work) {
    switch (work->kind) {
        case WORK_POINT:
        case WORK_WAIT:
        case WORK_GATE:
        case WORK_HOLD:
        case WORK_VALUE: return false;
        default: return true;
    }
}

static bool is_device(uint64_t address) { return memory_find(address).thing == THING_DEVICE; }

// Memory that was to be written by something that is not executed here is no mistake of the program.
static bool is_all_written(void) { return ledger->computed == ledger->launches && !unsimulated_was_called(); }

// It is told once for each place in the program that copies.
static bool is_told(uint32_t stack) {
    for (uint32_t i = 0; stack && i < told_count; i++)
        if (told[i] == stack) return true;
    if (told_count == TOLD_MAX) return true;
    told[told_count++] = stack;
    return false;
}

static void see_unwritten(const struct copy *copy, uint64_t first, uint64_t count) {
    struct span span = memory_find(first);
    ledger_see_wrong((struct observation){.seen = SEEN_COPIED_UNWRITTEN,
                                          .thing = THING_DEVICE,
                                          .device = (uint16_t)span.device,
                                          .function = copy->function,
                                          .stack = copy->stack,
                                          .flags = settings.is_strict ? FLAG_STRICT : 0,
                                          .object = copy->number,
                                          .address = first,
                                          .size_bytes = count,
                                          .other = span.start,
                                          .other_bytes = span.size_bytes});
}

// Only device memory can be known to be unwritten.
static void look_for_unwritten(const struct copy *copy) {
    enum { PIECE_BYTES = 64 };
    struct span span = memory_find(copy->from);
    if (!copy->function || copy->staged || span.thing != THING_DEVICE || span.dead || is_device(copy->to)) return;
    uint64_t first = 0, count = 0;
    const void *bits = shadow_of(span.device);
    for (uint64_t row = 0; row < copy->height; row++) {
        uint64_t start = copy->from + row * copy->from_pitch, end = start + copy->width;
        if (!block_bank(start) || shadow_is_whole(bits, start, copy->width)) continue;
        for (uint64_t at = start; at < end; at += PIECE_BYTES) {
            unsigned bytes = end - at < PIECE_BYTES ? (unsigned)(end - at) : PIECE_BYTES;
            unsigned written = shadow_count(span.device, at, bytes);
            if (!count && written < bytes)
                for (first = at; shadow_count(span.device, first, 1);) first++;
            count += bytes - written;
        }
    }
    if (count && is_all_written() && !is_told(copy->stack)) see_unwritten(copy, first, count);
}

static void run_copy_unguarded(const struct copy *copy) {
    if (shadows_are_kept) look_for_unwritten(copy);
    bool is_ours = memory_covers(copy->to) && (copy->staged || memory_covers(copy->from));
    for (uint64_t row = 0; row < copy->height; row++) {
        const void *from = copy->staged ? (char *)copy->staged + row * copy->width
                                        : (char *)copy->from + row * copy->from_pitch;
        uint64_t to = copy->to + row * copy->to_pitch;
        if (is_ours)
            memmove((void *)to, from, copy->width);
        else if (!client_memory_copy(to, (uint64_t)from, copy->width))
            return;  // the rows behind it lack the same
        if (shadows_are_kept) shadow_write(to, copy->width);
    }
}

static void run_copy(const struct copy *copy) {
    uint64_t to_bytes = (copy->height - 1) * copy->to_pitch + copy->width;
    uint64_t from_bytes = (copy->height - 1) * copy->from_pitch + copy->width;
    guard_suspend(copy->to, to_bytes);
    guard_suspend(copy->from, from_bytes);
    run_copy_unguarded(copy);
    guard_resume(copy->to, to_bytes);
    guard_resume(copy->from, from_bytes);
}

// Writes a row's first element and doubles what there is, up to as much as a processor's cache holds.
static void fill_row(char *start, const struct fill *fill) {
    enum { PATTERN_BYTES = 16 << 10 };
    uint64_t written = fill->value_bytes < fill->width ? fill->value_bytes : fill->width;
    memcpy(start, &fill->value, written);
    while (written < fill->width) {
        uint64_t piece = written < PATTERN_BYTES ? written : PATTERN_BYTES;
        if (piece > fill->width - written) piece = fill->width - written;
        memcpy(start + written, start, piece);
        written += piece;
    }
}

static void run_fill(const struct fill *fill) {
    for (uint64_t row = 0; row < fill->height; row++) {
        uint64_t start = fill->to + row * fill->pitch;
        if (!fill->value)
            memory_clear(start, fill->width);
        else if (fill->value_bytes == 1)
            memset((void *)start, (int)fill->value, fill->width);
        else
            fill_row((char *)start, fill);
        if (shadows_are_kept) shadow_write(start, fill->width);
    }
}

static void run_kernel(const struct launch_work *launch) {
    guard_suspend_all();
    upcalls.kernels.run_call(launch->call, launch->number);
    guard_resume_all();
}

void point_pass(struct point *point) {
    point->complete = true;
    point->step = ++steps;
}

void work_run(struct work *work) {
    steps++;
    switch (work->kind) {
        case WORK_COPY: run_copy(&work->copy); break;
        case WORK_FILL: run_fill(&work->fill); break;
        case WORK_FREE: memory_finish_free(&work->freed); break;
        case WORK_POINT: point_pass(work->point); break;
        case WORK_LAUNCH:
            if (work->launch.fault)
                context_break(work->launch.device, work->launch.fault);
            else if (work->launch.call)
                run_kernel(&work->launch);
            break;
        case WORK_ALLOCATE: graph_memory_begin_run(work->memory); break;
        case WORK_END: graph_memory_end_run(work->memory); break;
        case WORK_WAIT:
        case WORK_GATE:
        case WORK_VALUE:
        case WORK_HOLD:
        case WORK_EMPTY:
        case WORK_CHILD:
        case WORK_RECORD:
        case WORK_AWAIT:
        case WORK_HOST: break;  // run by the stream, without the lock
    }
}
