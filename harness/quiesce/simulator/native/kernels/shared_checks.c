#include "kernels/shared_checks.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/checks.h"
#include "kernels/lane_order.h"
#include "kernels/pending_copies.h"
#include "kernels/shared_ranges.h"

enum { ACCESS_BYTES_MAX = 32, THREAD_BITS = 10 };

// When, by whom and by which instruction a byte was touched. `when`: the moment, that of the warp, and the thread.
struct touch {
    uint64_t when;  // 0: never
    uint32_t site;
    uint16_t own;  // see lane_order.h
};

// An access now, as each clock has it.
struct access_now {
    struct touch by[LANE_CLOCKS];
};

struct cell {
    struct touch written, read[2];
};

// Of a word whose bytes were always used together, one cell says what is known of all four.
enum { WORD_BYTES = 4 };
static struct cell words[SHARED_BYTES_MAX / WORD_BYTES], bytes[SHARED_BYTES_MAX];
static bool is_split[SHARED_BYTES_MAX / WORD_BYTES], any_split;

static uint32_t moment;  // barriers and beginnings of blocks so far
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
    pending_copies_drop();
}

static struct access_now access_now(uint32_t thread, uint32_t site) {
    struct access_now now;
    for (enum lane_clock clock = 0; clock < LANE_CLOCKS; clock++) {
        uint64_t when = (uint64_t)moment << 32 | (uint64_t)lanes_moment(clock, thread) << THREAD_BITS | thread;
        now.by[clock] = (struct touch){when, site, lane_count(clock, thread)};
    }
    return now;
}

static bool is_of_now(const struct touch *touch) { return touch->when >> 32 == moment; }
static uint32_t thread_of(const struct touch *touch) { return (uint32_t)touch->when & (BLOCK_THREADS_MAX - 1); }
static bool are_of_one_warp(uint32_t thread, uint32_t other) { return thread / WARP_THREADS == other / WARP_THREADS; }

static bool is_unordered(enum lane_clock clock, const struct touch *before, const struct access_now *access) {
    const struct touch *now = &access->by[clock];
    uint32_t thread = thread_of(before), other = thread_of(now);
    if (!is_of_now(before) || thread == other) return false;
    if (!are_of_one_warp(thread, other)) return true;
    return before->when >> THREAD_BITS == now->when >> THREAD_BITS && !lane_knows(clock, other, thread, before->own);
}

static void note_read(struct cell *cell, const struct access_now *now) {
    const struct touch *read = &now->by[CLOCK_OF_READS];
    bool is_first = !is_of_now(&cell->read[0]) || thread_of(&cell->read[0]) == thread_of(read);
    cell->read[is_first ? 0 : 1] = *read;
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

struct met {
    enum meeting how;
    struct touch other;
    bool other_writes;
};

// Whether an access meets that of another thread, and which.
static struct met look(uint64_t offset, unsigned size, unsigned kind, const struct access_now *now) {
    struct met met = {.how = MEETS_NOBODY};
    for (uint64_t at = offset; at < offset + size; at += is_whole_word(at) ? WORD_BYTES : 1) {
        const struct cell *cell = cell_at(at);
        if (met.how != RACES && is_unordered(CLOCK_OF_WRITES, &cell->written, now))
            met = (struct met){kind == LOADS ? RACES : OVERWRITES, cell->written, true};
        for (unsigned reader = 0; kind == STORES && met.how != RACES && reader < 2; reader++)
            if (is_unordered(CLOCK_OF_READS, &cell->read[reader], now))
                met = (struct met){RACES, cell->read[reader], false};
    }
    return met;
}

static void note(uint64_t offset, unsigned size, unsigned kind, const struct access_now *now) {
    moment_of_bytes = moment;
    if (offset % WORD_BYTES || size % WORD_BYTES) split(offset, offset + size);
    for (uint64_t at = offset; at < offset + size; at += is_whole_word(at) ? WORD_BYTES : 1) {
        struct cell *cell = cell_at(at);
        if (kind == LOADS)
            note_read(cell, now);
        else
            cell->written = now->by[CLOCK_OF_WRITES];
    }
}

static uint64_t offset_in(const struct shared_range *range, const uint32_t at[3]) {
    int64_t way = 0;
    for (unsigned axis = 0; axis < 3; axis++) way += (int64_t)range->steps[axis] * at[axis];
    return range->offset + (uint64_t)way;
}

typedef bool visit(const struct shared_range *range, uint64_t offset, const struct access_now *now);

// What each thread of a range does, one after another, until one answers true.
static bool each_thread(const struct shared_range *range, visit *visit) {
    for (uint32_t z = 0; z < range->counts[2]; z++)
        for (uint32_t y = 0; y < range->counts[1]; y++)
            for (uint32_t x = 0; x < range->counts[0]; x++) {
                uint32_t row = range->first[1] + y + block_size[1] * (range->first[2] + z);
                struct access_now now = access_now(range->first[0] + x + block_size[0] * row, range->site);
                if (visit(range, offset_in(range, (uint32_t[]){x, y, z}), &now)) return true;
            }
    return false;
}

static bool note_in_range(const struct shared_range *range, uint64_t offset, const struct access_now *now) {
    note(offset, range->size, range->writes ? STORES : LOADS, now);
    return false;
}

static bool meets_in_range(const struct shared_range *range, uint64_t offset, const struct access_now *now) {
    return look(offset, range->size, range->writes ? STORES : LOADS, now).how != MEETS_NOBODY;
}

// Ranges become cells, before something is known of single ones.
static void spell_out(void) {
    unsigned count = ranges.moment == moment ? ranges.kept : 0;
    ranges.kept = ranges.count = 0;
    for (unsigned i = 0; i < count; i++) each_thread(&ranges.all[i], note_in_range);
}

void shared_checks_order_lanes(uint32_t warp, uint32_t lanes, bool are_all, bool is_barrier) {
    spell_out();
    bool is_over = lanes_meet(CLOCK_OF_READS, warp, lanes, are_all);
    if (is_barrier) is_over |= lanes_meet(CLOCK_OF_WRITES, warp, lanes, are_all);
    if (is_over) moment++;  // what came before is in order with all that follows
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
static inline bool note_at_once(uint64_t offset, unsigned size, unsigned kind, const struct access_now *now) {
    if (kind > STORES || offset % WORD_BYTES || size % WORD_BYTES) return false;
    uint64_t first = offset / WORD_BYTES, end = first + size / WORD_BYTES;
    for (uint64_t word = first; word < end; word++) {
        const struct cell *cell = &words[word];
        if (is_split[word] || is_unordered(CLOCK_OF_WRITES, &cell->written, now)) return false;
        for (unsigned reader = 0; kind == STORES && reader < 2; reader++)
            if (is_unordered(CLOCK_OF_READS, &cell->read[reader], now)) return false;
    }
    moment_of_bytes = moment;
    for (uint64_t word = first; word < end; word++) {
        if (kind == LOADS)
            note_read(&words[word], now);
        else
            words[word].written = now->by[CLOCK_OF_WRITES];
    }
    return true;
}

static void name_other(struct wrong_access *wrong, bool writes, uint32_t thread, uint32_t site) {
    wrong->other = (struct other_access){.is_there = true, .writes = writes, .site = site, .code = running_code};
    thread_index(thread, wrong->threads, wrong->other.thread);
}

// What two accesses that meet do wrong.
static void see(struct wrong_access *wrong, const struct met *met, const char *at) {
    uint32_t other = thread_of(&met->other);
    wrong->seen = are_of_one_warp(other, wrong->thread) ? SEEN_KERNEL_RACE_IN_WARP : SEEN_KERNEL_RACE_IN_SHARED;
    name_other(wrong, met->other_writes, other, met->other.site);
    if (met->how == RACES) {
        checks_see(wrong);
        return;
    }
    second_write.waits = true;
    second_write.at = at;
    second_write.size = wrong->bytes;
    second_write.wrong = *wrong;
    memcpy(second_write.before, at, wrong->bytes);
}

static void see_early(struct wrong_access *wrong, const struct pending_copy *copy) {
    wrong->seen = SEEN_KERNEL_USED_UNCOPIED;
    name_other(wrong, true, copy->thread, copy->site);
    checks_see(wrong);
}

void quiesce_kernel_shared(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                           uint32_t thread) {
    uint64_t offset = address - context->shared_base;
    unsigned size = access & 0xff, kind = access >> 8 & 0xf, effect = kind == BEGINS_COPY ? STORES : kind;
    if (is_new || block_turn != context->block_turn) follow_blocks(context);
    if (second_write.waits) settle();
    if (effect > STORES || offset >= context->shared_bytes || size > context->shared_bytes - offset) return;
    if (offset + size > SHARED_BYTES_MAX) return;
    if (ranges.kept) spell_out();
    struct access_now now = access_now(thread, site);
    const struct pending_copy *early = kind == BEGINS_COPY ? NULL : pending_copies_find(offset, size);
    if (!early && note_at_once(offset, size, kind, &now)) return;
    struct met met = early ? (struct met){.how = MEETS_NOBODY} : look(offset, size, effect, &now);
    struct pending_copy copy = {thread, site, (uint32_t)offset, size};
    struct wrong_access wrong = describe(context, offset, size, kind != LOADS, site, thread);
    if (early) see_early(&wrong, early);
    if (kind != BEGINS_COPY || !pending_copies_add(&copy)) note(offset, size, effect, &now);
    if (met.how) see(&wrong, &met, (const char *)address);
}

// -- asynchronous copies ---------------------------------------------------------------------------------------------

void quiesce_kernel_copies_commit(struct kernel_context *context, uint32_t thread) {
    follow_blocks(context);
    pending_copies_commit(thread);
}

void quiesce_kernel_copies_wait(struct kernel_context *context, uint32_t groups_left, uint32_t thread) {
    struct pending_copy copy;
    follow_blocks(context);
    while (pending_copies_take(thread, groups_left, &copy)) {
        struct access_now now = access_now(thread, copy.site);
        note(copy.offset, copy.bytes, STORES, &now);
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
    int64_t limit = context->shared_bytes < SHARED_BYTES_MAX ? context->shared_bytes : SHARED_BYTES_MAX, odd = low;
    *made = (struct shared_range){
        .offset = (uint32_t)low,
        .size = (uint32_t)size,
        .writes = (range->access >> 8 & 0xf) != LOADS,
        .site = range->site,
    };
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
