#include "kernels/call_stack.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "kernels/checks.h"
#include "kernels/watch.h"
#include "machine/device.h"

enum { SPARE_BYTES = 256 << 10 };  // what functions need that do not call themselves

static _Thread_local uint64_t used_bytes;
static uint64_t limit_bytes;
static _Thread_local uint64_t lowest;  // of the addresses that this thread of the client may go down to

static uint64_t find_lowest(void) {
    pthread_attr_t attributes;
    void *start = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes)) return SPARE_BYTES;
    if (pthread_attr_getstack(&attributes, &start, &bytes)) start = NULL;
    pthread_attr_destroy(&attributes);
    return (uint64_t)start + (bytes / 2 < SPARE_BYTES ? bytes / 2 : SPARE_BYTES);
}

void call_stack_begin(unsigned device) {
    used_bytes = 0;
    limit_bytes = device_limit_of(device, LIMIT_STACK);
}

static _Noreturn void overflow(const struct kernel_context *context, uint32_t site, uint32_t thread) {
    struct wrong_access wrong = {.seen = SEEN_KERNEL_STACK_OVERFLOW, .site = site, .thread = thread};
    wrong.missed.bytes = limit_bytes;
    memcpy(wrong.block, context->block_index, sizeof wrong.block);
    memcpy(wrong.threads, context->block, sizeof wrong.threads);
    used_bytes = 0;
    checks_see(&wrong);
    watch_leave(ENDED_BY_CALLS);
}

void quiesce_kernel_enter(struct kernel_context *context, uint32_t bytes, uint32_t site, uint32_t thread) {
    used_bytes += bytes;
    if (used_bytes > limit_bytes) overflow(context, site, thread);
    if (!lowest) {
        watch_hold();
        lowest = find_lowest();
        watch_release();
    }
    if ((uint64_t)__builtin_frame_address(0) > lowest) return;
    used_bytes = 0;
    watch_leave(ENDED_BY_STACK);
}

void quiesce_kernel_leave(uint32_t bytes) { used_bytes -= bytes; }
