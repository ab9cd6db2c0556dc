#include "kernels/block.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/checks.h"
#include "kernels/together.h"
#include "kernels/warp.h"

enum { PATIENCE = 16 };  // rounds in which threads of a block only looked at memory

static _Thread_local uint64_t turns;  // no part of a block: one that stands still does not change

size_t block_bytes(const struct object *object, const uint32_t block[3]) {
    size_t each = object->info.suspends ? kernel_thread_bytes(object->info.frame_bytes) : 0;
    size_t threads = each * block[0] * block[1] * block[2];
    return threads + object->info.array_bytes;
}

static void *block_frames(const struct object *object, const uint32_t block[3], char *memory) {
    return memory + block_bytes(object, block) - object->info.array_bytes;
}

// In the order of their numbers: x first, then y, then z.
static void make_threads(struct block *block) {
    const uint32_t *size = block->context.block;
    size_t bytes = kernel_thread_bytes(block->object->info.frame_bytes);
    unsigned number = 0;
    for (uint32_t z = 0; z < size[2]; z++)
        for (uint32_t y = 0; y < size[1]; y++)
            for (uint32_t x = 0; x < size[0]; x++, number++) {
                struct kernel_thread *thread = (struct kernel_thread *)(block->memory + bytes * number);
                *thread = (struct kernel_thread){
                    .index = {x, y, z}, .lane = number % WARP_THREADS, .warp = number / WARP_THREADS};
                block->threads[number] = thread;
            }
    block->count = block->left = number;
}

// Runs a thread until it waits for another one. Returns 0, or how the kernel ended. `any`: it did more than look.
static int run_until_it_waits(struct block *block, struct kernel_thread *thread, bool *any) {
    block->current = thread;
    for (;;) {
        int operation = block->object->thread(&block->context, thread);
        if (operation < 0) return operation;
        if (operation == OPERATION_YIELD) return 0;  // it is ready, when the others had their turn
        // a warp that looks at memory may vote whether to look again
        if (operation < OPERATION_SHFL_UP || operation == OPERATION_STEP) *any = true;
        if (operation == OPERATION_STEP) {
            block->is_stepping = true;
            return 0;
        }
        if (!operation) {
            thread->status = THREAD_DONE;
            block->left--;
            return 0;
        }
        thread->operation = (uint32_t)operation;
        if (operation <= OPERATION_ARRIVE && !barrier_meet(&block->barriers, thread)) return ENDED_BY_TRAP;
        if (operation == OPERATION_ARRIVE) continue;
        thread->status = THREAD_WAITS;
        return 0;
    }
}

// The first place at which threads of a warp may go on: states are numbered as their places are in the text.
static uint32_t first_state(const struct warp *warp) {
    uint32_t first = UINT32_MAX;
    for (unsigned lane = 0; lane < warp->count; lane++) {
        const struct kernel_thread *each = warp->threads[lane];
        if (each->status == THREAD_READY && each->state < first) first = each->state;
    }
    return first;
}

// In a kernel whose threads are in step, only those at the first place go on. So they meet again after a branch.
static int run_warp(struct block *block, struct warp *warp, bool *any, bool *looks) {
    do {
        uint32_t first = first_state(warp);
        for (unsigned i = 0; i < warp->count; i++) {
            unsigned lane = block->order->is_backwards ? warp->count - 1 - i : i;
            if (warp->threads[lane]->status != THREAD_READY) continue;
            if (block->is_stepping && warp->threads[lane]->state != first) continue;
            int end = run_until_it_waits(block, warp->threads[lane], any);
            if (end) return end;
            *looks = true;
        }
    } while (warp_resolve(warp));
    return 0;
}

static int run_warps(struct block *block, bool *any, bool *looks) {
    unsigned warps = (block->count + WARP_THREADS - 1) / WARP_THREADS;
    for (unsigned i = 0; i < warps; i++) {
        unsigned first = (unsigned)permuted(&block->order->warps, i) * WARP_THREADS;
        unsigned count = block->count - first < WARP_THREADS ? block->count - first : WARP_THREADS;
        struct warp warp = {.object = block->object, .context = &block->context, .count = count};
        memcpy(warp.threads, block->threads + first, count * sizeof *warp.threads);
        int end = run_warp(block, &warp, any, looks);
        if (end) return end;
    }
    return 0;
}

void block_open(struct block *block, const struct object *object, const struct order *order, char *memory) {
    block->object = object;
    block->order = order;
    block->memory = memory;
    block->current = NULL;
    block->has_threads = block->is_stepping = false;
    // Of threads that are followed, each has to do what it said before the next one says something.
    block->is_together = object->together && !(object->info.by_warps && checks_follower());
    block->context.frames = block_frames(object, block->context.block, memory);
    barriers_open(&block->barriers, object, &block->context);
}

// Lets each thread go on by itself, after all were run together.
static int part(struct block *block) {
    block->left = 0;
    for (unsigned i = 0; i < block->count; i++) {
        struct kernel_thread *thread = block->threads[i];
        if (!together_part(block->object, &block->context, i, thread)) continue;
        block->left++;
        if (thread->status == THREAD_WAITS && !barrier_meet(&block->barriers, thread)) return ENDED_BY_TRAP;
    }
    return 0;
}

// Runs all threads together, as far as they come. Returns 0, or how the kernel ended.
static int run_all(struct block *block, uint32_t from) {
    int end = together_run(block->object, &block->context, from);
    if (end < 0) return end;
    if (!block->has_threads && end) make_threads(block);
    block->has_threads |= end;
    if (end) return part(block);
    block->left = 0;
    return 0;
}

static int begin(struct block *block) {
    block->left = 1;  // or more
    if (block->is_together) return run_all(block, 0);
    make_threads(block);
    block->has_threads = true;
    return 0;
}

int block_run(struct block *block) {
    enum block_turn turn = BLOCK_SPINS;
    if (!block->has_threads) {
        int end = begin(block);
        if (end) return end;
        turn = BLOCK_CAME_TO_SPIN;
    }
    for (unsigned looked = 0; block->left;) {
        bool any = false, looks = false;
        int end = run_warps(block, &any, &looks);
        if (end) return end;
        if (barriers_resolve(&block->barriers, block->threads, block->count, block->left)) {
            any = true;
            turns += block->left;
            bool are_together =
                block->is_together && together_again(block->object, block->threads, block->count);
            end = are_together ? run_all(block, block->threads[0]->state) : 0;
            if (end) return end;
        }
        if (!any && !looks && block->left) return ENDED_WAITING;
        if (any) turn = BLOCK_CAME_TO_SPIN;
        looked = any ? 0 : looked + 1;
        if (looked == PATIENCE) return turn;
    }
    return BLOCK_ENDED;
}

uint64_t block_turns_take(void) {
    uint64_t taken = turns;
    turns = 0;
    return taken;
}
