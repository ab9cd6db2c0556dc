#include "kernels/block.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/barrier.h"
#include "kernels/warp.h"

enum { ALIGNMENT = 64 };

struct block {
    const struct object *object;
    struct kernel_context *context;
    struct kernel_thread *threads[BLOCK_THREADS_MAX];
    unsigned count, left;
    struct barriers barriers;
};

static size_t thread_bytes(const struct object *object) {
    return (sizeof(struct kernel_thread) + object->info.frame_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t block_bytes(const struct object *object, const uint32_t block[3]) {
    return object->info.suspends ? thread_bytes(object) * block[0] * block[1] * block[2] : 0;
}

// In the order of their numbers: x first, then y, then z.
static void make_threads(struct block *block, char *memory) {
    const uint32_t *size = block->context->block;
    size_t bytes = thread_bytes(block->object);
    unsigned number = 0;
    for (uint32_t z = 0; z < size[2]; z++)
        for (uint32_t y = 0; y < size[1]; y++)
            for (uint32_t x = 0; x < size[0]; x++, number++) {
                struct kernel_thread *thread = (struct kernel_thread *)(memory + bytes * number);
                *thread = (struct kernel_thread){
                    .index = {x, y, z}, .lane = number % WARP_THREADS, .warp = number / WARP_THREADS};
                block->threads[number] = thread;
            }
    block->count = block->left = number;
}

// Runs a thread until it waits for another one. Returns 0, or how the kernel ended.
static int run_until_it_waits(struct block *block, struct kernel_thread *thread) {
    for (;;) {
        int operation = block->object->thread(block->context, thread);
        if (operation < 0) return operation;
        if (!operation) {
            thread->status = THREAD_DONE;
            block->left--;
            return 0;
        }
        if (operation == OPERATION_YIELD) return 0;  // it is ready, when the others had their turn
        thread->operation = (uint32_t)operation;
        if (operation <= OPERATION_ARRIVE && !barrier_meet(&block->barriers, thread)) return ENDED_BY_TRAP;
        if (operation == OPERATION_ARRIVE) continue;
        thread->status = THREAD_WAITS;
        return 0;
    }
}

static int run_warp(struct block *block, struct warp *warp, bool *any) {
    do {
        for (unsigned lane = 0; lane < warp->count; lane++) {
            if (warp->threads[lane]->status != THREAD_READY) continue;
            int end = run_until_it_waits(block, warp->threads[lane]);
            if (end) return end;
            *any = true;
        }
    } while (warp_resolve(warp));
    return 0;
}

int block_run(const struct object *object, struct kernel_context *context, char *memory) {
    static struct block block;  // large; one runs at a time
    block.object = object;
    block.context = context;
    make_threads(&block, memory);
    barriers_open(&block.barriers);
    while (block.left) {
        bool any = false;
        for (unsigned first = 0; first < block.count; first += WARP_THREADS) {
            unsigned count = block.count - first < WARP_THREADS ? block.count - first : WARP_THREADS;
            struct warp warp = {.count = count};
            memcpy(warp.threads, block.threads + first, count * sizeof *warp.threads);
            int end = run_warp(&block, &warp, &any);
            if (end) return end;
        }
        any |= barriers_resolve(&block.barriers, block.threads, block.count, block.left);
        if (!any && block.left) return ENDED_WAITING;
    }
    return 0;
}
