#include "kernels/shared_checks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/beside.h"
#include "kernels/checks.h"
#include "kernels/guesses.h"
#include "kernels/lane_order.h"
#include "kernels/memory_races.h"
#include "kernels/pending_copies.h"
#include "kernels/shared_atomics.h"
#include "kernels/shared_content.h"
#include "kernels/shared_ranges.h"
#include "kernels/shared_words.h"
#include "machine/settings.h"

enum { ACCESS_BYTES_MAX = 32 };

enum use { READS, WRITES, CHANGES };  // changes: by an atomic operation

struct accessor {
    uint32_t thread, site;
};

// Two accesses that are in no order, the later one first.
struct race {
    uint32_t offset, size;
    struct accessor by, other;
    enum use use, other_use;
};

// What is known of the block that a thread runs.
struct shared_checks {
    struct shared_words words;
    struct lanes lanes;
    // Of a word whose bytes were not always used together, each byte has a cell.
    struct cell bytes[SHARED_BYTES_MAX];
    bool is_split[SHARED_WORDS_MAX], any_split;
    uint32_t moment_of_bytes;  // the last one in which cells were touched
    struct guesses guesses;
    struct shared_ranges ranges;
    bool is_new;
    // The block that was seen last.
    struct {
        uint32_t turn, index[3], size[3], shared_bytes;
    } block;
    // A write to a byte that another thread has written: a race, unless both wrote the same, as many kernels do often.
    struct {
        bool waits;
        const char *at;
        char before[ACCESS_BYTES_MAX];
        struct race race;
    } second_write;
};

static struct shared_checks alone, *besides[BESIDE_MAX];
static _Thread_local struct shared_checks *own = &alone;
_Thread_local struct shared_words *shared_words = &alone.words;
_Thread_local struct lanes *lane_state = &alone.lanes;

// The kernel tells of its next access.
static void note_here(void) { shared_words->turn = shared_words->changing = NO_TURN; }

void shared_checks_begin(void) {
    own->second_write.waits = false;
    guesses_begin(&own->guesses);
    own->is_new = true;
    note_here();
    lanes_forget();
    if (own->any_split) memset(own->is_split, 0, sizeof own->is_split);
    own->any_split = false;
}

static void begin_moment(void) {
    shared_words->moment++;
    note_here();  // the first access has something to say of this moment
}

void shared_checks_order_block(void) {
    if (!settings.checks) return;
    begin_moment();
    memory_races_order_block();
}

void quiesce_kernel_barrier(struct kernel_context *context) {
    (void)context;
    shared_checks_order_block();
}

static struct wrong_access describe(const struct race *race) {
    struct wrong_access wrong = {.address = race->offset,
                                 .bytes = race->size,
                                 .writes = race->use != READS,
                                 .site = race->by.site,
                                 .thread = race->by.thread,
                                 .shared_bytes = own->block.shared_bytes};
    memcpy(wrong.block, own->block.index, sizeof wrong.block);
    memcpy(wrong.threads, own->block.size, sizeof wrong.threads);
    wrong.other = (struct other_access){
        .is_there = true, .writes = race->other_use != READS, .site = race->other.site, .code = running_code};
    thread_index(race->other.thread, wrong.threads, wrong.other.thread);
    return wrong;
}

// Of an atomic operation and a plain access the plain one is what is wrong, whichever came first here.
static struct wrong_access describe_race(const struct race *race) {
    struct race told = *race;
    if (race->use == CHANGES) {
        told.by = race->other;
        told.other = race->by;
        told.use = race->other_use;
        told.other_use = race->use;
    }
    struct wrong_access wrong = describe(&told);
    bool is_in_warp = are_of_one_warp(race->by.thread, race->other.thread);
    wrong.seen = is_in_warp ? SEEN_KERNEL_RACE_IN_WARP : SEEN_KERNEL_RACE_IN_SHARED;
    return wrong;
}

static void see_race(const struct race *race) {
    struct wrong_access wrong = describe_race(race);
    checks_see(&wrong);
}

static void keep_guess(const struct race *race) {
    struct wrong_access wrong = describe_race(race);
    guesses_keep(&own->guesses, &wrong, race->use == READS ? race->by.site : race->other.site);
}

static void settle(void) {
    if (!own->second_write.waits) return;
    own->second_write.waits = false;
    const struct race *race = &own->second_write.race;
    if (memcmp(own->second_write.at, own->second_write.before, race->size)) see_race(race);
}

void shared_checks_end_block(void) { settle(); }

void shared_checks_end(void) {
    settle();
    guesses_see(&own->guesses);
}

// -- beside other threads --------------------------------------------------------------------------------------------

static void use(struct shared_checks *checks) {
    own = checks;
    shared_words = &checks->words;
    lane_state = &checks->lanes;
}

struct shared_words *shared_checks_beside(unsigned number) {
    if (!besides[number]) besides[number] = calloc(1, sizeof *besides[number]);
    return besides[number] ? &besides[number]->words : NULL;
}

void shared_checks_enter(unsigned number) {
    use(besides[number]);
    shared_checks_begin();
}

void shared_checks_leave(void) { use(&alone); }

static uint64_t number_of(const struct wrong_access *wrong, const uint32_t grid[3]) {
    return wrong->block[0] + grid[0] * (wrong->block[1] + (uint64_t)grid[1] * wrong->block[2]);
}

// Those of the first block come first; of one thread all are in order.
void shared_checks_gather(unsigned count, const uint32_t grid[3]) {
    uint32_t at[BESIDE_MAX] = {0};
    for (;;) {
        unsigned first = count;
        uint64_t block = UINT64_MAX;
        for (unsigned i = 0; i < count; i++) {
            const struct guesses *each = &besides[i]->guesses;
            if (at[i] == each->count || number_of(&each->kept[at[i]], grid) >= block) continue;
            first = i;
            block = number_of(&each->kept[at[i]], grid);
        }
        if (first == count) break;
        const struct guesses *found = &besides[first]->guesses;
        guesses_keep(&alone.guesses, &found->kept[at[first]], found->sites[at[first]]);
        at[first]++;
    }
    for (unsigned i = 0; i < count; i++) guesses_verify_all(&alone.guesses, &besides[i]->guesses);
}

void shared_checks_close(void) {
    for (unsigned i = 0; i < BESIDE_MAX; i++) {
        free(besides[i]);
        besides[i] = NULL;
    }
}

static void follow_blocks(const struct kernel_context *context) {
    if (!own->is_new && own->block.turn == context->block_turn) return;
    settle();
    own->is_new = false;
    own->block.turn = context->block_turn;
    own->block.shared_bytes = context->shared_bytes;
    memcpy(own->block.index, context->block_index, sizeof own->block.index);
    memcpy(own->block.size, context->block, sizeof own->block.size);
    begin_moment();
    pending_copies_drop();
}

static enum lane_clock clock_of(unsigned which) { return which == WRITTEN ? CLOCK_OF_WRITES : CLOCK_OF_READS; }

static inline bool is_unordered(const struct cell *cell, unsigned which, uint32_t thread) {
    return is_unordered_touch(&cell->touched[which], clock_of(which), thread);
}

static inline void note_touch(struct cell *cell, unsigned which, const struct accessor *by) {
    cell->touched[which] = touch_of(clock_of(which), by->thread, by->site);
}

static inline void note_in_cell(struct cell *cell, bool writes, const struct accessor *by) {
    if (writes)
        note_touch(cell, WRITTEN, by);
    else
        note_touch(cell, is_by_other_now(cell->touched[READ].when, by->thread) ? READ_TOO : READ, by);
}

// Which touches an access may race with: any access with writes, and a write with reads.
static inline unsigned touches_to_compare(enum use use) { return use != READS ? TOUCHES_OF_WORD : WRITTEN + 1; }

static void split(uint64_t first, uint64_t end) {
    for (uint64_t word = first / WORD_BYTES; word <= (end - 1) / WORD_BYTES; word++) {
        if (own->is_split[word]) continue;
        own->is_split[word] = own->any_split = true;
        for (unsigned i = 0; i < WORD_BYTES; i++) own->bytes[word * WORD_BYTES + i] = shared_words->all[word];
    }
}

enum meeting { MEETS_NOBODY, OVERWRITES, GUESSES, RACES };

static bool is_whole_word(uint64_t at) { return !(at % WORD_BYTES) && !own->is_split[at / WORD_BYTES]; }

static struct cell *cell_at(uint64_t at) {
    uint64_t word = at / WORD_BYTES;
    return own->is_split[word] ? &own->bytes[at] : &shared_words->all[word];
}

static enum meeting kind_of_meeting(enum use use, enum use other) {
    if (use == WRITES && other == WRITES) return OVERWRITES;
    return (use == READS && other == CHANGES) || (use == CHANGES && other == READS) ? GUESSES : RACES;
}

// What is found first of the worst kind.
static void meet(struct race *race, enum meeting *met, const struct last_touch *touch, enum use other) {
    enum meeting kind = kind_of_meeting(race->use, other);
    if (kind <= *met) return;
    *met = kind;
    race->other = (struct accessor){thread_of(touch->when), touch->site};
    race->other_use = other;
}

// Whether an access meets that of another thread, and which.
static enum meeting look(struct race *race) {
    enum meeting met = MEETS_NOBODY;
    for (uint64_t at = race->offset; at < race->offset + race->size; at += is_whole_word(at) ? WORD_BYTES : 1) {
        const struct cell *cell = cell_at(at);
        for (unsigned which = 0; met != RACES && which < touches_to_compare(race->use); which++)
            if (is_unordered(cell, which, race->by.thread))
                meet(race, &met, &cell->touched[which], which == WRITTEN ? WRITES : READS);
    }
    if (race->use == CHANGES) return met;
    const struct last_touch *change = shared_atomics_meet(race->offset, race->size, race->by.thread);
    if (change) meet(race, &met, change, CHANGES);
    return met;
}

// A guess that the thread's own atomic operation looks at is no race.
static void verify(uint64_t offset, uint64_t end, uint32_t thread) {
    for (uint64_t at = offset; at < end; at += is_whole_word(at) ? WORD_BYTES : 1)
        for (unsigned which = READ; which <= READ_TOO; which++) {
            const struct last_touch *read = &cell_at(at)->touched[which];
            bool is_of_now = read->when >> 32 == shared_words->moment;
            if (is_of_now && thread_of(read->when) == thread) guesses_verify(&own->guesses, read->site);
        }
}

static void note(uint64_t offset, unsigned size, enum use use, const struct accessor *by) {
    own->moment_of_bytes = shared_words->moment;
    if (use == CHANGES) {
        shared_atomics_note(offset, size, by->thread, by->site);
        verify(offset, offset + size, by->thread);
        return;
    }
    if (offset % WORD_BYTES || size % WORD_BYTES) split(offset, offset + size);
    for (uint64_t at = offset; at < offset + size; at += is_whole_word(at) ? WORD_BYTES : 1)
        note_in_cell(cell_at(at), use == WRITES, by);
}

static uint64_t offset_in(const struct shared_range *range, const uint32_t at[3]) {
    int64_t way = 0;
    for (unsigned axis = 0; axis < 3; axis++) way += (int64_t)range->steps[axis] * at[axis];
    return range->offset + (uint64_t)way;
}

typedef bool visit(const struct shared_range *range, uint64_t offset, const struct accessor *by);

// What each thread of a range does, one after another, until one answers true.
static bool each_thread(const struct shared_range *range, visit *visit) {
    for (uint32_t z = 0; z < range->counts[2]; z++)
        for (uint32_t y = 0; y < range->counts[1]; y++)
            for (uint32_t x = 0; x < range->counts[0]; x++) {
                uint32_t row = range->first[1] + y + own->block.size[1] * (range->first[2] + z);
                struct accessor by = {range->first[0] + x + own->block.size[0] * row, range->site};
                if (visit(range, offset_in(range, (uint32_t[]){x, y, z}), &by)) return true;
            }
    return false;
}

static bool note_in_range(const struct shared_range *range, uint64_t offset, const struct accessor *by) {
    note(offset, range->size, range->writes ? WRITES : READS, by);
    return false;
}

static bool meets_in_range(const struct shared_range *range, uint64_t offset, const struct accessor *by) {
    enum use use = range->writes ? WRITES : READS;
    struct race race = {.offset = (uint32_t)offset, .size = range->size, .by = *by, .use = use};
    return look(&race) != MEETS_NOBODY;
}

// Ranges become cells, before something is known of single ones.
static void spell_out(void) {
    unsigned count = own->ranges.moment == shared_words->moment ? own->ranges.kept : 0;
    own->ranges.kept = own->ranges.count = 0;
    for (unsigned i = 0; i < count; i++) each_thread(&own->ranges.all[i], note_in_range);
}

void shared_checks_order_lanes(uint32_t warp, uint32_t lanes, bool are_all, bool is_barrier) {
    if (!settings.checks) return;
    spell_out();
    uint32_t(*moments)[WARPS_MAX] = shared_words->lanes_moments, of = warp % WARPS_MAX;
    bool is_over = lanes_meet(CLOCK_OF_READS, warp, lanes, are_all, &moments[CLOCK_OF_READS][of]);
    if (is_barrier) is_over |= lanes_meet(CLOCK_OF_WRITES, warp, lanes, are_all, &moments[CLOCK_OF_WRITES][of]);
    if (lane_state->split) note_here();
    if (is_over) begin_moment();  // what came before is in order with all that follows
    memory_races_order_lanes(of, is_barrier);
}

void quiesce_kernel_lanes(struct kernel_context *context, uint32_t warp, uint32_t lanes, bool are_all,
                          bool is_barrier) {
    (void)context;
    shared_checks_order_lanes(warp, lanes, are_all, is_barrier);
}

// Of an access to whole words, where nobody meets another one.
static inline bool note_at_once(uint64_t offset, unsigned size, enum use use, const struct accessor *by) {
    if (offset % WORD_BYTES || size % WORD_BYTES || use == CHANGES) return false;
    if (shared_atomics_are_known()) return false;
    uint64_t first = offset / WORD_BYTES, end = first + size / WORD_BYTES;
    for (uint64_t word = first; word < end; word++) {
        if (own->is_split[word]) return false;
        for (unsigned which = 0; which < touches_to_compare(use); which++)
            if (is_unordered(&shared_words->all[word], which, by->thread)) return false;
    }
    own->moment_of_bytes = shared_words->moment;
    for (uint64_t word = first; word < end; word++) note_in_cell(&shared_words->all[word], use == WRITES, by);
    return true;
}

static void see_second_write(const struct race *race, const char *at) {
    own->second_write.waits = true;
    own->second_write.at = at;
    own->second_write.race = *race;
    memcpy(own->second_write.before, at, race->size);
}

static void see_early(const struct race *race) {
    struct wrong_access wrong = describe(race);
    wrong.seen = SEEN_KERNEL_USED_UNCOPIED;
    checks_see(&wrong);
}

static void see_unwritten(uint64_t offset, unsigned size, const struct accessor *by) {
    struct race read = {.offset = (uint32_t)offset, .size = size, .by = *by};
    struct wrong_access wrong = describe(&read);
    wrong.seen = SEEN_KERNEL_SHARED_UNWRITTEN;
    wrong.other.is_there = false;
    checks_see(&wrong);
}

static void see_access(struct kernel_context *context, uint64_t address, uint32_t access, struct accessor by) {
    uint64_t offset = address - context->shared_base;
    unsigned size = access & 0xff, kind = access >> 8 & 0xf;
    enum use use = kind == LOADS ? READS : kind == IS_ATOMIC ? CHANGES : WRITES;
    bool begins_copy = kind == BEGINS_COPY;
    if (offset >= context->shared_bytes || size > context->shared_bytes - offset) return;
    if (offset + size > SHARED_BYTES_MAX) return;
    if (own->ranges.kept) spell_out();
    if (settings.is_strict && kind == LOADS && shared_content_is_new((const char *)context->shared_base, offset, size))
        see_unwritten(offset, size, &by);
    const struct pending_copy *early = begins_copy ? NULL : pending_copies_find(offset, size);
    if (!early && !begins_copy && note_at_once(offset, size, use, &by)) return;
    struct race race = {.offset = (uint32_t)offset, .size = size, .by = by, .use = use};
    enum meeting met = early ? MEETS_NOBODY : look(&race);
    if (early) {
        race.other = (struct accessor){early->thread, early->site};
        race.other_use = WRITES;
        see_early(&race);
    }
    struct pending_copy copy = {by.thread, by.site, (uint32_t)offset, size};
    if (!begins_copy || !pending_copies_add(&copy)) note(offset, size, use, &by);
    if (met == RACES) see_race(&race);
    if (met == GUESSES) keep_guess(&race);
    if (met == OVERWRITES) see_second_write(&race, (const char *)address);
}

// Whether all that is known is of words: then the kernel may go on noting there by itself.
static bool is_all_in_words(void) {
    return own->moment_of_bytes == shared_words->moment && !own->second_write.waits && !own->ranges.kept &&
           !own->any_split && !lane_state->split && !pending_copies_wait() && !settings.is_strict;
}

void quiesce_kernel_shared(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                           uint32_t thread) {
    note_here();
    if (own->is_new || own->block.turn != context->block_turn) follow_blocks(context);
    if (own->second_write.waits) settle();
    see_access(context, address, access, (struct accessor){thread, site});
    if (!is_all_in_words()) return;
    if (shared_atomics_are_known())
        shared_words->changing = own->block.turn;
    else
        shared_words->turn = own->block.turn;
}

void *quiesce_kernel_check_any(struct kernel_context *context, uint64_t address, uint32_t access, uint32_t site,
                               uint32_t thread, const void *frame) {
    if (address - context->shared_base < context->shared_bytes)
        quiesce_kernel_shared(context, address, access, site, thread);
    return quiesce_kernel_check(context, address, access, site, thread, frame);
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
        struct accessor by = {thread, copy.site};
        note(copy.offset, copy.bytes, WRITES, &by);
    }
}

// -- ranges ----------------------------------------------------------------------------------------------------------

void shared_checks_begin_ranges(const struct kernel_context *context) {
    follow_blocks(context);
    settle();
    note_here();
    shared_ranges_begin(&own->ranges, shared_words->moment);
}

bool shared_checks_add_range(const struct kernel_context *context, const struct kernel_range *range) {
    struct shared_range *added = shared_ranges_next(&own->ranges);
    if (!range->counts[0] || !range->counts[1] || !range->counts[2]) return true;
    if (!added || settings.is_strict || !shared_range_lay_out(context, range, added)) return false;
    if (own->moment_of_bytes == shared_words->moment && each_thread(added, meets_in_range)) return false;
    return shared_ranges_add(&own->ranges);
}

void shared_checks_keep_ranges(void) { shared_ranges_keep(&own->ranges); }
