#include "kernels/together.h"

#include "kernels/warp.h"

enum { ENDED_STATE = -1 };

int together_run(const struct object *object, struct kernel_context *context, uint32_t from) {
    return object->together(context, context->frames, from);
}

bool together_part(const struct object *object, const struct kernel_context *context, unsigned number,
                   struct kernel_thread *thread) {
    int32_t next = ((const int32_t *)context->frames)[number];
    thread->status = THREAD_DONE;
    if (next == ENDED_STATE) return false;
    const struct kernel_state *state = &object->states[next - 1];
    thread->state = (uint32_t)next;
    thread->operation = state->operation;
    thread->operand_b = (uint32_t)state->barrier;
    thread->operand_c = 0;
    thread->status = state->barrier < 0 ? THREAD_READY : THREAD_WAITS;  // the others wait for nothing
    return true;
}

bool together_again(const struct object *object, struct kernel_thread *const *threads, unsigned count) {
    uint32_t state = threads[0]->state;
    if (!object->together || !state || object->states[state - 1].barrier < 0) return false;
    for (unsigned i = 0; i < count; i++)
        if (threads[i]->status != THREAD_READY || threads[i]->state != state) return false;
    return true;
}
