#include "kernels/shared_checks.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/checks.h"

enum { BYTES_MAX = 232448, WARPS_MAX = BLOCK_THREADS_MAX / WARP_THREADS, ACCESS_BYTES_MAX = 32 };
enum kind { LOADS, STORES };  // atomic operations are no races, and write

// When and by whom a byte was touched. `moment` 0: never.
struct touch {
    uint32_t moment, warp_moment;
    uint16_t thread;
};

static struct byte {
    struct touch written, read[2];
} bytes[BYTES_MAX];

// Of a word whose bytes were always used together, its first byte says what is known of all four.
enum { WORD_BYTES = 4 };
static bool is_split[BYTES_MAX / WORD_BYTES], any_split;

static uint32_t moment;  // barriers and beginnings of blocks so far
static uint32_t warp_moments[WARPS_MAX];
static uint64_t base;
static uint32_t block_index[3];
static bool is_new;

// A write to a byte that another thread has written: a race, unless both wrote the same.
static struct {
    bool waits;
    const char *at;
    unsigned size;
    char before[ACCESS_BYTES_MAX];
    struct wrong_access wrong;
} second_write;

void shared_checks_begin(void) {
    second_write.waits = false;
    is_new = true;
    if (any_split) memset(is_split, 0, sizeof is_split);
    any_split = false;
}

void shared_checks_order_block(void) { moment++; }

void shared_checks_order_warp(uint32_t warp) { warp_moments[warp % WARPS_MAX]++; }

void quiesce_kernel_barrier(struct kernel_context *context) {
    (void)context;
    shared_checks_order_block();
}

static void settle(void) {
    if (!second_write.waits) return;
    second_write.waits = false;
    if (memcmp(second_write.at, second_write.before, second_write.size)) checks_see(&second_write.wrong);
}

void shared_checks_end(void) { settle(); }

static void follow_blocks(const struct kernel_context *context) {
    bool is_same = !is_new && base == context->shared_base &&
                   !memcmp(block_index, context->block_index, sizeof block_index);
    if (is_same) return;
    settle();
    is_new = false;
    base = context->shared_base;
    memcpy(block_index, context->block_index, sizeof block_index);
    moment++;
}

static bool is_unordered(const struct touch *touch, uint32_t thread) {
    if (touch->moment != moment || touch->thread == thread) return false;
    bool same_warp = touch->thread / WARP_THREADS == thread / WARP_THREADS;
    return !same_warp || touch->warp_moment == warp_moments[thread / WARP_THREADS];
}

static void touch(struct touch *touch, uint32_t thread) {
    *touch = (struct touch){moment, warp_moments[thread / WARP_THREADS], (uint16_t)thread};
}

static void note_read(struct byte *byte, uint32_t thread) {
    struct touch *first = &byte->read[0], *second = &byte->read[1];
    if (first->moment != moment || first->thread == thread)
        touch(first, thread);
    else
        touch(second, thread);
}

static void split(uint64_t first, uint64_t end) {
    for (uint64_t word = first / WORD_BYTES; word <= (end - 1) / WORD_BYTES; word++) {
        if (is_split[word]) continue;
        is_split[word] = any_split = true;
        for (unsigned i = 1; i < WORD_BYTES; i++) bytes[word * WORD_BYTES + i] = bytes[word * WORD_BYTES];
    }
}

static struct wrong_access describe(const struct kernel_context *context, uint64_t offset, unsigned size, bool writes,
                                    uint32_t site, uint32_t thread) {
    struct wrong_access wrong = {.address = offset,
                                 .bytes = size,
                                 .writes = writes,
                                 .site = site,
                                 .thread = thread,
                                 .shared_bytes = context->shared_bytes};
    memcpy(wrong.block, context->block_index, sizeof wrong.block);
    memcpy(wrong.threads, context->block, sizeof wrong.threads);
    return wrong;
}

void quiesce_kernel_shared(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                           uint32_t thread) {
    uint64_t offset = address - context->shared_base;
    unsigned size = access & 0xff, kind = access >> 8 & 0xf;
    follow_blocks(context);
    settle();
    if (offset >= context->shared_bytes || size > context->shared_bytes - offset || offset + size > BYTES_MAX) return;
    bool races = false, overwrites = false;
    uint32_t other = 0;
    if (offset % WORD_BYTES || size % WORD_BYTES) split(offset, offset + size);
    for (uint64_t at = offset, step; at < offset + size; at += step) {
        struct byte *byte = &bytes[at];
        step = at % WORD_BYTES || is_split[at / WORD_BYTES] ? 1 : WORD_BYTES;
        if (kind <= STORES && is_unordered(&byte->written, thread)) {
            races |= kind == LOADS;
            overwrites |= kind == STORES;
            other = byte->written.thread;
        }
        for (unsigned reader = 0; kind == STORES && reader < 2; reader++)
            if (is_unordered(&byte->read[reader], thread)) {
                races = true;
                other = byte->read[reader].thread;
            }
        if (kind == LOADS) note_read(byte, thread);
        if (kind == STORES) touch(&byte->written, thread);
    }
    struct wrong_access wrong = describe(context, offset, size, kind != LOADS, site, thread);
    wrong.other_thread = other;
    wrong.seen = SEEN_KERNEL_RACE_IN_SHARED;
    if (races) {
        checks_see(&wrong);
    } else if (overwrites) {
        second_write.waits = true;
        second_write.at = (const char *)address;
        second_write.size = size;
        second_write.wrong = wrong;
        memcpy(second_write.before, (const char *)address, size);
    }
}
