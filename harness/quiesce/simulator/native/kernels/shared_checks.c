#include "kernels/shared_checks.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/checks.h"
#include "kernels/shared_ranges.h"

enum { BYTES_MAX = 232448, WARPS_MAX = BLOCK_THREADS_MAX / WARP_THREADS, ACCESS_BYTES_MAX = 32 };

// When and by whom a byte was touched: the moment, that of the warp, and the thread. 0: never.
typedef uint64_t touch;
enum { THREAD_BITS = 10, WARP_MOMENT_BITS = 22 };

struct cell {
    touch written, read[2];
};

// Of a word whose bytes were always used together, one cell says what is known of all four.
enum { WORD_BYTES = 4 };
static struct cell words[BYTES_MAX / WORD_BYTES], bytes[BYTES_MAX];
static bool is_split[BYTES_MAX / WORD_BYTES], any_split;

static uint32_t moment;  // barriers and beginnings of blocks so far
static uint32_t warp_moments[WARPS_MAX];
static uint32_t moment_of_bytes;  // the last one in which cells were touched
static struct shared_ranges ranges;
static uint32_t block_turn, block_size[3];  // of the block that was seen last
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
    if (!is_new && block_turn == context->block_turn) return;
    settle();
    is_new = false;
    block_turn = context->block_turn;
    moment++;
}

static touch touch_now(uint32_t thread) {
    return (uint64_t)moment << 32 | (uint64_t)warp_moments[thread / WARP_THREADS] << THREAD_BITS | thread;
}

static bool is_of_now(touch touch) { return touch >> 32 == moment; }
static uint32_t thread_of(touch touch) { return (uint32_t)touch & (BLOCK_THREADS_MAX - 1); }

static bool is_unordered(touch before, touch now) {
    uint32_t thread = thread_of(before), other = thread_of(now);
    if (!is_of_now(before) || thread == other) return false;
    bool is_same_warp = thread / WARP_THREADS == other / WARP_THREADS;
    return !is_same_warp || before >> THREAD_BITS == now >> THREAD_BITS;
}

static void note_read(struct cell *cell, touch now) {
    bool is_first = !is_of_now(cell->read[0]) || thread_of(cell->read[0]) == thread_of(now);
    cell->read[is_first ? 0 : 1] = now;
}

static void split(uint64_t first, uint64_t end) {
    for (uint64_t word = first / WORD_BYTES; word <= (end - 1) / WORD_BYTES; word++) {
        if (is_split[word]) continue;
        is_split[word] = any_split = true;
        for (unsigned i = 0; i < WORD_BYTES; i++) bytes[word * WORD_BYTES + i] = words[word];
    }
}

enum meeting { MEETS_NOBODY, RACES, OVERWRITES };

static bool is_whole_word(uint64_t at) { return !(at % WORD_BYTES) && !is_split[at / WORD_BYTES]; }

static struct cell *cell_at(uint64_t at) {
    uint64_t word = at / WORD_BYTES;
    return is_split[word] ? &bytes[at] : &words[word];
}

// Whether an access meets that of another thread, and whose.
static enum meeting look(uint64_t offset, unsigned size, unsigned kind, touch now, uint32_t *other) {
    enum meeting met = MEETS_NOBODY;
    for (uint64_t at = offset; at < offset + size; at += is_whole_word(at) ? WORD_BYTES : 1) {
        const struct cell *cell = cell_at(at);
        if (is_unordered(cell->written, now)) {
            if (met != RACES) met = kind == LOADS ? RACES : OVERWRITES;
            *other = thread_of(cell->written);
        }
        for (unsigned reader = 0; kind == STORES && reader < 2; reader++)
            if (is_unordered(cell->read[reader], now)) {
                met = RACES;
                *other = thread_of(cell->read[reader]);
            }
    }
    return met;
}

static void note(uint64_t offset, unsigned size, unsigned kind, touch now) {
    moment_of_bytes = moment;
    if (offset % WORD_BYTES || size % WORD_BYTES) split(offset, offset + size);
    for (uint64_t at = offset; at < offset + size; at += is_whole_word(at) ? WORD_BYTES : 1) {
        struct cell *cell = cell_at(at);
        if (kind == LOADS)
            note_read(cell, now);
        else
            cell->written = now;
    }
}

static uint64_t offset_in(const struct shared_range *range, const uint32_t at[3]) {
    int64_t way = 0;
    for (unsigned axis = 0; axis < 3; axis++) way += (int64_t)range->steps[axis] * at[axis];
    return range->offset + (uint64_t)way;
}

// What each thread of a range does, one after another, until one answers true.
static bool each_thread(const struct shared_range *range, bool (*visit)(const struct shared_range *, uint64_t, touch)) {
    for (uint32_t z = 0; z < range->counts[2]; z++)
        for (uint32_t y = 0; y < range->counts[1]; y++)
            for (uint32_t x = 0; x < range->counts[0]; x++) {
                uint32_t row = range->first[1] + y + block_size[1] * (range->first[2] + z);
                uint32_t thread = range->first[0] + x + block_size[0] * row;
                if (visit(range, offset_in(range, (uint32_t[]){x, y, z}), touch_now(thread))) return true;
            }
    return false;
}

static bool note_in_range(const struct shared_range *range, uint64_t offset, touch now) {
    note(offset, range->size, range->writes ? STORES : LOADS, now);
    return false;
}

static bool meets_in_range(const struct shared_range *range, uint64_t offset, touch now) {
    uint32_t other;
    return look(offset, range->size, range->writes ? STORES : LOADS, now, &other) != MEETS_NOBODY;
}

// Ranges become cells, before something is known of single ones.
static void spell_out(void) {
    unsigned count = ranges.moment == moment ? ranges.kept : 0;
    ranges.kept = ranges.count = 0;
    for (unsigned i = 0; i < count; i++) each_thread(&ranges.all[i], note_in_range);
}

void shared_checks_order_warp(uint32_t warp) {
    uint32_t *own = &warp_moments[warp % WARPS_MAX];
    spell_out();
    if (!(++*own >> WARP_MOMENT_BITS)) return;
    *own = 0;
    moment++;  // there are no more numbers: what came before is in order with all that follows
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

// Of an access to whole words, where nobody meets another one.
static inline bool note_at_once(uint64_t offset, unsigned size, unsigned kind, touch now) {
    if (offset % WORD_BYTES || size % WORD_BYTES) return false;
    uint64_t first = offset / WORD_BYTES, end = first + size / WORD_BYTES;
    for (uint64_t word = first; word < end; word++) {
        const struct cell *cell = &words[word];
        if (is_split[word] || is_unordered(cell->written, now)) return false;
        if (kind == STORES && (is_unordered(cell->read[0], now) || is_unordered(cell->read[1], now))) return false;
    }
    moment_of_bytes = moment;
    for (uint64_t word = first; word < end; word++) {
        if (kind == LOADS)
            note_read(&words[word], now);
        else
            words[word].written = now;
    }
    return true;
}

void quiesce_kernel_shared(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                           uint32_t thread) {
    uint64_t offset = address - context->shared_base;
    unsigned size = access & 0xff, kind = access >> 8 & 0xf;
    if (is_new || block_turn != context->block_turn) follow_blocks(context);
    if (second_write.waits) settle();
    if (kind > STORES || offset >= context->shared_bytes || size > context->shared_bytes - offset) return;
    if (offset + size > BYTES_MAX) return;
    if (ranges.kept) spell_out();
    touch now = touch_now(thread);
    if (note_at_once(offset, size, kind, now)) return;
    uint32_t other = 0;
    enum meeting met = look(offset, size, kind, now, &other);
    note(offset, size, kind, now);
    if (met == MEETS_NOBODY) return;
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
    memcpy(block_size, context->block, sizeof block_size);
    shared_ranges_begin(&ranges, moment);
}

// Lays an instruction's accesses out in shared memory. False: one of them is outside, or misaligned.
static bool lay_out(const struct kernel_context *context, const struct kernel_range *range, struct shared_range *made) {
    int64_t size = range->access & 0xff, low = (int64_t)(range->address - context->shared_base), high = low;
    int64_t limit = context->shared_bytes < BYTES_MAX ? context->shared_bytes : BYTES_MAX, odd = low;
    *made = (struct shared_range){
        .offset = (uint32_t)low, .size = (uint32_t)size, .writes = (range->access >> 8 & 0xf) != LOADS};
    if (low < 0 || low >= limit) return false;
    for (unsigned axis = 0; axis < 3; axis++) {
        int64_t step = range->counts[axis] > 1 ? range->steps[axis] : 0;
        if (step >= limit || step <= -limit) return false;
        made->steps[axis] = (int32_t)step;
        made->first[axis] = range->first[axis];
        made->counts[axis] = range->counts[axis];
        odd |= step;
        *(step < 0 ? &low : &high) += step * (int64_t)(range->counts[axis] - 1);
    }
    made->low = (uint32_t)low;
    made->high = (uint32_t)(high + size);
    return low >= 0 && high + size <= limit && !(odd & (size - 1));
}

bool shared_checks_add_range(const struct kernel_context *context, const struct kernel_range *range) {
    struct shared_range *added = shared_ranges_next(&ranges);
    if (!range->counts[0] || !range->counts[1] || !range->counts[2]) return true;
    if (!added || !lay_out(context, range, added)) return false;
    if (moment_of_bytes == moment && each_thread(added, meets_in_range)) return false;
    return shared_ranges_add(&ranges);
}

void shared_checks_keep_ranges(void) { shared_ranges_keep(&ranges); }
