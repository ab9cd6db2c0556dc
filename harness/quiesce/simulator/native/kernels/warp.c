#include "kernels/warp.h"

#include <string.h>

#include "kernels/checks.h"
#include "kernels/matrix.h"
#include "kernels/shared_checks.h"

static bool is_barrier(uint32_t operation) { return operation <= OPERATION_ARRIVE; }

// Which threads take part in what a thread waits for, or 0: not all of them are there.
static uint32_t participants(const struct warp *warp, const struct kernel_thread *asking) {
    uint32_t here = 0;
    for (unsigned lane = 0; lane < warp->count; lane++) {
        const struct kernel_thread *each = warp->threads[lane];
        if (!(asking->mask >> lane & 1) || each->status == THREAD_DONE) continue;
        if (each->status != THREAD_WAITS || each->operation != asking->operation || each->mask != asking->mask)
            return 0;
        here |= 1u << lane;
    }
    return here;
}

// A thread takes a value from a lane that takes no part, and uses it.
static void see_absent(const struct warp *warp, unsigned lane, unsigned source) {
    const struct kernel_thread *thread = warp->threads[lane];
    const struct kernel_context *context = warp->context;
    enum absence why = !(thread->mask >> source & 1) ? NOT_IN_MASK : source >= warp->count ? NO_THREAD : HAS_ENDED;
    uint32_t site = object_waits_at(warp->object, thread->state);
    if (site == NO_SITE) return;
    struct wrong_access wrong = {.seen = SEEN_KERNEL_SHUFFLES_ABSENT,
                                 .address = source,
                                 .bytes = why,
                                 .site = site,
                                 .thread = thread->warp * WARP_THREADS + thread->lane};
    memcpy(wrong.block, context->block_index, sizeof wrong.block);
    memcpy(wrong.threads, context->block, sizeof wrong.threads);
    checks_see(&wrong);
}

// "shfl.sync" of the ISA, in its words: the source lane, and whether it is within the segment.
static void shuffle(const struct warp *warp, unsigned lane, uint32_t here) {
    struct kernel_thread *thread = warp->threads[lane];
    int own = (int)lane, by = (int)(thread->operand_b & 31), clamp = (int)(thread->operand_c & 31);
    int segment = (int)(thread->operand_c >> 8 & 31);
    int most = (own & segment) | (clamp & ~segment), least = own & segment, source;
    bool is_within;
    switch (thread->operation) {
        case OPERATION_SHFL_UP:
            source = own - by;
            is_within = source >= most;
            break;
        case OPERATION_SHFL_DOWN:
            source = own + by;
            is_within = source <= most;
            break;
        case OPERATION_SHFL_BFLY:
            source = own ^ by;
            is_within = source <= most;
            break;
        default:
            source = least | (by & ~segment);
            is_within = source <= most;
    }
    if (!is_within) source = own;
    thread->predicate = is_within;
    // "d is undefined" where the source takes no part: devices give 0
    bool is_there = (unsigned)source < warp->count && here >> source & 1;
    thread->result = is_there ? warp->threads[source]->value : 0;
    if (!is_there && thread->operand_c >> 31) see_absent(warp, lane, (unsigned)source);
}

static uint32_t reduce_two(uint32_t operation, uint32_t first, uint32_t second) {
    switch (operation) {
        case OPERATION_REDUX_ADD: return first + second;
        case OPERATION_REDUX_MIN: return first < second ? first : second;
        case OPERATION_REDUX_MAX: return first > second ? first : second;
        case OPERATION_REDUX_AND: return first & second;
        case OPERATION_REDUX_OR: return first | second;
        case OPERATION_REDUX_XOR: return first ^ second;
        case OPERATION_REDUX_SIGNED_MIN: return (int32_t)first < (int32_t)second ? first : second;
        default: return (int32_t)first > (int32_t)second ? first : second;
    }
}

struct gathered {
    uint32_t here, voted, reduced;
};

static struct gathered gather(const struct warp *warp, uint32_t here, uint32_t operation) {
    struct gathered found = {.here = here};
    bool is_first = true;
    for (unsigned lane = 0; lane < warp->count; lane++) {
        if (!(here >> lane & 1)) continue;
        uint64_t value = warp->threads[lane]->value;
        if (value) found.voted |= 1u << lane;
        found.reduced = is_first ? (uint32_t)value : reduce_two(operation, found.reduced, (uint32_t)value);
        is_first = false;
    }
    return found;
}

static uint32_t equals_of(const struct warp *warp, uint32_t here, uint64_t value) {
    uint32_t equals = 0;
    for (unsigned lane = 0; lane < warp->count; lane++)
        if (here >> lane & 1 && warp->threads[lane]->value == value) equals |= 1u << lane;
    return equals;
}

static void finish(const struct warp *warp, unsigned lane, const struct gathered *found) {
    struct kernel_thread *thread = warp->threads[lane];
    uint32_t equals;
    switch (thread->operation) {
        case OPERATION_SHFL_UP:
        case OPERATION_SHFL_DOWN:
        case OPERATION_SHFL_BFLY:
        case OPERATION_SHFL_IDX: shuffle(warp, lane, found->here); break;
        case OPERATION_VOTE_ANY: thread->result = found->voted != 0; break;
        case OPERATION_VOTE_ALL: thread->result = found->voted == found->here; break;
        case OPERATION_VOTE_UNI: thread->result = !found->voted || found->voted == found->here; break;
        case OPERATION_VOTE_BALLOT: thread->result = found->voted; break;
        case OPERATION_MATCH_ANY: thread->result = equals_of(warp, found->here, thread->value); break;
        case OPERATION_MATCH_ALL:
            equals = equals_of(warp, found->here, thread->value);
            thread->predicate = equals == found->here;
            thread->result = thread->predicate ? found->here : 0;
            break;
        case OPERATION_WARP_SYNC:
        case OPERATION_LOAD_MATRIX:
        case OPERATION_STORE_MATRIX:
        case OPERATION_MULTIPLY_MATRICES: break;
        default: thread->result = found->reduced;
    }
}

// Lanes at one place go on with the mask of all of them: nothing else lets a lane of the warp go on before.
static bool tell_active(const struct warp *warp) {
    uint32_t state = 0, here = 0;
    for (unsigned lane = 0; lane < warp->count; lane++) {
        const struct kernel_thread *each = warp->threads[lane];
        if (each->status != THREAD_WAITS || each->operation != OPERATION_ACTIVE_MASK) continue;
        if (!here) state = each->state;
        if (each->state == state) here |= 1u << lane;
    }
    for (unsigned lane = 0; lane < warp->count; lane++) {
        if (!(here >> lane & 1)) continue;
        warp->threads[lane]->result = here;
        warp->threads[lane]->status = THREAD_READY;
    }
    return here;
}

bool warp_resolve(struct warp *warp) {
    uint32_t all_lanes = UINT32_MAX >> (WARP_THREADS - warp->count);
    bool any = false;
    for (unsigned first = 0; first < warp->count; first++) {
        struct kernel_thread *asking = warp->threads[first];
        if (asking->status != THREAD_WAITS || is_barrier(asking->operation)) continue;
        if (asking->operation == OPERATION_ACTIVE_MASK) continue;
        uint32_t here = participants(warp, asking);
        if (!(here >> first & 1)) continue;  // a mask that leaves the thread itself out is never complete
        if (asking->operation >= OPERATION_LOAD_MATRIX) {
            if (here != UINT32_MAX) continue;  // all threads of a warp have to take part
            matrix_run(warp->threads);
        }
        bool are_all = (asking->mask | all_lanes) == asking->mask;
        shared_checks_order_lanes(asking->warp, here, are_all, asking->operation == OPERATION_WARP_SYNC);
        struct gathered found = gather(warp, here, asking->operation);
        for (unsigned lane = 0; lane < warp->count; lane++)
            if (here >> lane & 1) finish(warp, lane, &found);
        for (unsigned lane = 0; lane < warp->count; lane++)
            if (here >> lane & 1) warp->threads[lane]->status = THREAD_READY;
        any = true;
    }
    return any || tell_active(warp);
}
