#include "kernels/barrier.h"

#include <string.h>

#include "kernels/shared_checks.h"
#include "kernels/warp.h"

void barriers_open(struct barriers *barriers) { memset(barriers, 0, sizeof *barriers); }

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
        let_go(threads, count, barrier);
        shared_checks_order_block();
        barriers->waiting[barrier] = barriers->arrived[barrier] = 0;
        any = true;
    }
    return any;
}
