#include "kernels/barrier.h"

#include <string.h>

#include "kernels/checks.h"
#include "kernels/shared_checks.h"
#include "kernels/warp.h"
#include "machine/settings.h"

void barriers_open(struct barriers *barriers, const struct object *object, const struct kernel_context *context) {
    *barriers = (struct barriers){.object = object, .context = context};
}

bool barrier_meet(struct barriers *barriers, const struct kernel_thread *thread) {
    if (thread->operand_b >= BARRIERS) return false;
    if (thread->operation == OPERATION_ARRIVE)
        barriers->arrived[thread->operand_b]++;
    else
        barriers->waiting[thread->operand_b]++;
    return true;
}

static bool is_at(const struct kernel_thread *thread, unsigned barrier) {
    return thread->status == THREAD_WAITS && thread->operation < OPERATION_ARRIVE && thread->operand_b == barrier;
}

static unsigned number_of(const struct kernel_thread *thread) { return thread->warp * WARP_THREADS + thread->lane; }

static void see_divergence(const struct barriers *barriers, const struct kernel_thread *thread,
                           const struct kernel_thread *other) {
    const int32_t *sites = barriers->object->state_sites;
    int32_t site = sites[thread->state - 1], other_site = sites[other->state - 1];
    if (site < 0 || other_site < 0) return;
    // One instruction has several states where its function is called from several places.
    if (barriers->object->sites[site].line == barriers->object->sites[other_site].line) return;
    struct wrong_access wrong = {
        .seen = SEEN_KERNEL_BARRIERS_DIFFER, .site = (uint32_t)site, .thread = number_of(thread)};
    memcpy(wrong.block, barriers->context->block_index, sizeof wrong.block);
    memcpy(wrong.threads, barriers->context->block, sizeof wrong.threads);
    wrong.other = (struct other_access){.is_there = true, .site = (uint32_t)other_site, .code = running_code};
    memcpy(wrong.other.thread, other->index, sizeof wrong.other.thread);
    checks_see(&wrong);
}

// Threads of a warp come to the same instruction: of each warp the first one that does not is a mistake.
static void look_at_warps(const struct barriers *barriers, struct kernel_thread *const *threads, unsigned count,
                          unsigned barrier) {
    const struct kernel_thread *first = NULL;
    bool differs = false;
    if (!barriers->object->state_sites || !barriers->object->sites) return;
    for (unsigned i = 0; i < count; i++) {
        if (!is_at(threads[i], barrier)) continue;
        if (!first || first->warp != threads[i]->warp) {
            first = threads[i];
            differs = false;
        } else if (threads[i]->state != first->state && !differs) {
            differs = true;
            see_divergence(barriers, first, threads[i]);
        }
    }
}

static void see_left(const struct barriers *barriers, const struct kernel_thread *thread,
                     const struct kernel_thread *other) {
    int32_t site = barriers->object->state_sites[thread->state - 1];
    if (site < 0) return;
    struct wrong_access wrong = {.seen = SEEN_KERNEL_WARP_LEFT, .site = (uint32_t)site, .thread = number_of(thread)};
    memcpy(wrong.block, barriers->context->block_index, sizeof wrong.block);
    memcpy(wrong.threads, barriers->context->block, sizeof wrong.threads);
    wrong.other = (struct other_access){.is_there = true, .site = NO_SITE};
    memcpy(wrong.other.thread, other->index, sizeof wrong.other.thread);
    checks_see(&wrong);
}

// Many kernels let threads end that have nothing to do, and a device goes on without them: of each warp the first one.
static void look_at_ended(const struct barriers *barriers, struct kernel_thread *const *threads, unsigned count,
                          unsigned barrier) {
    if (!barriers->object->state_sites || !barriers->object->sites) return;
    for (unsigned first = 0; first < count; first += WARP_THREADS) {
        const struct kernel_thread *waits = NULL, *ended = NULL;
        for (unsigned i = first; i < count && i < first + WARP_THREADS; i++) {
            if (!waits && is_at(threads[i], barrier)) waits = threads[i];
            if (!ended && threads[i]->status == THREAD_DONE) ended = threads[i];
        }
        if (waits && ended) see_left(barriers, waits, ended);
    }
}

static void let_go(struct kernel_thread *const *threads, unsigned count, unsigned barrier) {
    uint64_t here = 0, agreeing = 0;
    for (unsigned i = 0; i < count; i++)
        if (is_at(threads[i], barrier)) {
            here++;
            agreeing += threads[i]->value != 0;
        }
    for (unsigned i = 0; i < count; i++) {
        if (!is_at(threads[i], barrier)) continue;
        switch (threads[i]->operation) {
            case OPERATION_RED_POPC: threads[i]->result = agreeing; break;
            case OPERATION_RED_AND: threads[i]->result = agreeing == here; break;
            case OPERATION_RED_OR: threads[i]->result = agreeing != 0; break;
            default: break;
        }
        threads[i]->status = THREAD_READY;
    }
}

// For how many threads the first one that waits at a barrier does; all of them say the same.
static unsigned wanted(struct kernel_thread *const *threads, unsigned count, unsigned barrier) {
    for (unsigned i = 0; i < count; i++)
        if (is_at(threads[i], barrier)) return threads[i]->operand_c;
    return 0;
}

bool barriers_resolve(struct barriers *barriers, struct kernel_thread *const *threads, unsigned count, unsigned left) {
    bool any = false;
    for (unsigned barrier = 0; barrier < BARRIERS; barrier++) {
        if (!barriers->waiting[barrier]) continue;
        unsigned all = wanted(threads, count, barrier);
        if (barriers->waiting[barrier] + barriers->arrived[barrier] < (all ? all : left)) continue;
        look_at_warps(barriers, threads, count, barrier);
        if (settings.is_strict) look_at_ended(barriers, threads, count, barrier);
        let_go(threads, count, barrier);
        shared_checks_order_block();
        barriers->waiting[barrier] = barriers->arrived[barrier] = 0;
        any = true;
    }
    return any;
}
