#include "kernels/shared_checks.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/checks.h"
#include "kernels/shared_ranges.h"

enum { BYTES_MAX = 232448, WARPS_MAX = BLOCK_THREADS_MAX / WARP_THREADS, ACCESS_BYTES_MAX = 32 };

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
static uint32_t moment_of_bytes;  // the last one in which `bytes` were touched
static struct shared_ranges ranges;
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

enum meeting { MEETS_NOBODY, RACES, OVERWRITES };

static bool is_whole_word(uint64_t at) { return !(at % WORD_BYTES) && !is_split[at / WORD_BYTES]; }

static struct byte *byte_at(uint64_t at) {
    uint64_t word = at / WORD_BYTES;
    return &bytes[is_split[word] ? at : word * WORD_BYTES];
}

// Whether an access meets that of another thread, and whose.
static enum meeting look(uint64_t offset, unsigned size, unsigned kind, uint32_t thread, uint32_t *other) {
    enum meeting met = MEETS_NOBODY;
    if (kind > STORES) return met;
    for (uint64_t at = offset; at < offset + size; at += is_whole_word(at) ? WORD_BYTES : 1) {
        const struct byte *byte = byte_at(at);
        if (is_unordered(&byte->written, thread)) {
            if (met != RACES) met = kind == LOADS ? RACES : OVERWRITES;
            *other = byte->written.thread;
        }
        for (unsigned reader = 0; kind == STORES && reader < 2; reader++)
            if (is_unordered(&byte->read[reader], thread)) {
                met = RACES;
                *other = byte->read[reader].thread;
            }
    }
    return met;
}

static void note(uint64_t offset, unsigned size, unsigned kind, uint32_t thread) {
    moment_of_bytes = moment;
    if (offset % WORD_BYTES || size % WORD_BYTES) split(offset, offset + size);
    for (uint64_t at = offset; at < offset + size; at += is_whole_word(at) ? WORD_BYTES : 1) {
        if (kind == LOADS) note_read(&bytes[at], thread);
        if (kind == STORES) touch(&bytes[at].written, thread);
    }
}

// Ranges become bytes, before something is known of single ones.
static void spell_out(void) {
    unsigned count = ranges.moment == moment ? ranges.kept : 0;
    ranges.kept = ranges.count = 0;
    for (const struct shared_range *each = ranges.all; each < ranges.all + count; each++)
        for (uint32_t i = 0; i < each->count; i++)
            note(each->offset + (each->is_same ? 0 : i * each->size), each->size, each->writes ? STORES : LOADS,
                 each->thread + i);
}

void shared_checks_order_warp(uint32_t warp) {
    spell_out();
    warp_moments[warp % WARPS_MAX]++;
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
    spell_out();
    uint32_t other = 0;
    enum meeting met = look(offset, size, kind, thread, &other);
    note(offset, size, kind, thread);
    struct wrong_access wrong = describe(context, offset, size, kind != LOADS, site, thread);
    wrong.other_thread = other;
    wrong.seen = SEEN_KERNEL_RACE_IN_SHARED;
    if (met == RACES) {
        checks_see(&wrong);
    } else if (met == OVERWRITES) {
        second_write.waits = true;
        second_write.at = (const char *)address;
        second_write.size = size;
        second_write.wrong = wrong;
        memcpy(second_write.before, (const char *)address, size);
    }
}

// -- ranges ----------------------------------------------------------------------------------------------------------

void shared_checks_begin_ranges(const struct kernel_context *context) {
    follow_blocks(context);
    settle();
    if (ranges.moment != moment) ranges.kept = 0;
    ranges.moment = moment;
    ranges.count = ranges.kept;
}

static bool meets_bytes(const struct shared_range *range) {
    uint32_t other;
    if (moment_of_bytes != moment) return false;
    for (uint32_t i = 0; i < range->count; i++) {
        uint32_t offset = range->offset + (range->is_same ? 0 : i * range->size);
        if (look(offset, range->size, range->writes ? STORES : LOADS, range->thread + i, &other)) return true;
    }
    return false;
}

bool shared_checks_add_range(const struct kernel_context *context, const struct kernel_range *range) {
    uint32_t size = range->access & 0xff, count = range->counts[0] * range->counts[1] * range->counts[2];
    uint64_t offset = range->address - context->shared_base;
    struct shared_range added = {.offset = (uint32_t)offset,
                                 .size = size,
                                 .count = count,
                                 .is_same = !range->steps[0] || count > range->counts[0],
                                 .writes = (range->access >> 8 & 0xf) != LOADS};
    if (!count) return true;
    if (count > range->counts[0] && (range->steps[0] || added.writes)) return false;
    uint64_t bytes = (uint64_t)size * (added.is_same ? 1 : count);
    if (offset % size || offset >= context->shared_bytes || bytes > context->shared_bytes - offset) return false;
    if (offset + bytes > BYTES_MAX || (added.is_same && added.writes && count > 1)) return false;
    const uint32_t *block = context->block, *first = range->first;
    added.thread = first[0] + block[0] * (first[1] + block[1] * first[2]);
    return !meets_bytes(&added) && shared_ranges_add(&ranges, &added);
}

void shared_checks_keep_ranges(void) { ranges.kept = ranges.count; }
