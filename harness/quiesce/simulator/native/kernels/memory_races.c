#include "kernels/memory_races.h"

#include <stdio.h>
#include <string.h>

#include "kernels/block_order.h"
#include "kernels/chains.h"
#include "kernels/constant_stores.h"
#include "kernels/guesses.h"
#include "kernels/memory_rows.h"
#include "kernels/memory_words.h"
#include "kernels/touched.h"
#include "kernels/watch.h"
#include "machine/settings.h"
#include "memory/places.h"

enum { ACCESS_BYTES_MAX = 32 };
enum { WORDS_LOOKED_AT = 1 << 14 };  // in a launch, for races of blocks: it takes a millisecond

// What a thread does to memory.
struct doing {
    uint64_t address;
    uint32_t bytes, thread, site;  // thread: of the grid
    enum { READS, WRITES, CHANGES } what;  // changes: by an atomic operation
    bool is_strong;                // volatile, relaxed, acquire, release
};

static bool is_looking;
static enum races looked_for;
static uint32_t words_left;
static const char *kernel;
static uint32_t blocks[3], threads[3];

// The block that was seen last.
static struct {
    uint32_t turn, number;
} block;

// A write that is about to take place: only one that changes its bytes counts.
static struct {
    bool waits;
    struct doing doing;
    char before[ACCESS_BYTES_MAX];
} latest;

// The last access that raced: what its thread does next with the word is part of the same mistake.
static struct {
    uint64_t word;
    uint32_t thread;
} accused;

static struct guesses guesses;

// The last read that was excused, and the store that it met.
static struct {
    uint64_t word;
    uint32_t thread, store;
} excused;


// The block that runs goes on without being asked for each access.
static void leave_alone(void) {
    struct kernel_context *context = (struct kernel_context *)watch_context();  // no block's context is constant
    checks_follow(NULL);
    if (context) context->checks = checks_bits();
}

static void tell_once(const char *why) {
    static bool was_told;
    if (looked_for == RACES_OF_BLOCKS) return;  // a launch may have more than is looked at
    if (!was_told) fprintf(stderr, "quiesce: races of blocks of kernel '%.200s' are not looked for: %s\n", kernel, why);
    was_told = true;
}

static void stop_looking(const char *why) {
    is_looking = false;
    if (looked_for == RACES_OF_BLOCKS) leave_alone();
    tell_once(why);
}

static bool make_room(uint64_t blocks) {
    bool by_blocks = looked_for == RACES_OF_BLOCKS;
    return block_order_begin(blocks) &&
           memory_words_begin(by_blocks ? WORDS_BY_THEMSELVES : WORDS_IN_PAGES, block_order_begun()) &&
           (!by_blocks || memory_rows_begin(block_order_begun()));
}

bool memory_races_begin(const char *name, uint64_t count, enum races which) {
    kernel = name;
    looked_for = which;
    words_left = WORDS_LOOKED_AT;
    is_looking = latest.waits = false;
    guesses_begin(&guesses);
    constant_stores_begin();
    chains_begin();
    block.turn = 0;
    accused.word = excused.word = 0;
    if (count > GRID_BLOCKS_MAX)
        tell_once("it has more than 4,194,304 blocks");
    else if (make_room(count) && checks_follow(memory_races_see))
        is_looking = true;
    else
        tell_once("this machine has no memory for it");
    if (!is_looking) block_order_end();
    return is_looking;
}

static void follow(const struct kernel_context *context) {
    if (block.turn == context->block_turn) return;
    const uint32_t *index = context->block_index;
    memcpy(blocks, context->grid, sizeof blocks);
    memcpy(threads, context->block, sizeof threads);
    block.turn = context->block_turn;
    block.number = index[0] + blocks[0] * (index[1] + blocks[1] * index[2]);
}

// -- findings --------------------------------------------------------------------------------------------------------

static enum seen kind_of(uint32_t thread, uint32_t other) {
    if (thread / BLOCK_THREADS_MAX != other / BLOCK_THREADS_MAX) return SEEN_KERNEL_RACE_OF_BLOCKS;
    return thread / WARP_THREADS == other / WARP_THREADS ? SEEN_KERNEL_MEMORY_RACE_IN_WARP
                                                         : SEEN_KERNEL_MEMORY_RACE_IN_BLOCK;
}

static void block_index(uint32_t thread, uint32_t index[3]) {
    thread_index(thread / BLOCK_THREADS_MAX, blocks, index);
}

// Of a read and a write the read is what is wrong, whichever came first here: both come first somewhere.
static struct wrong_access describe(const struct doing *doing, const struct word_use *use, bool was_read) {
    uint32_t thread = was_read ? use->thread : doing->thread, other = was_read ? doing->thread : use->thread;
    struct wrong_access wrong = {.seen = kind_of(thread, other),
                                 .address = doing->address,
                                 .bytes = doing->bytes,
                                 .writes = !was_read && doing->what != READS,
                                 .site = was_read ? use->site : doing->site,
                                 .thread = thread % BLOCK_THREADS_MAX};
    memcpy(wrong.threads, threads, sizeof wrong.threads);
    block_index(thread, wrong.block);
    wrong.other = (struct other_access){
        .is_there = true, .writes = true, .site = was_read ? doing->site : use->site, .code = running_code};
    thread_index(other % BLOCK_THREADS_MAX, threads, wrong.other.thread);
    block_index(other, wrong.other.block);
    return wrong;
}

// An instruction has several sites where its accesses are judged by ranges as well: it goes by its line.
static uint32_t instruction_of(uint32_t site) { return running_code.sites[site].line % VERIFIED_MAX; }

// Reads of rows are noted before what comes before them in the text, and by one thread for all.
static bool verifies(const struct doing *by, const struct word_use *use) {
    if (looked_for == RACES_OF_ALL) return use->thread == by->thread;
    const struct kernel_site *sites = running_code.sites;
    bool is_of_block = use->thread / BLOCK_THREADS_MAX == by->thread / BLOCK_THREADS_MAX;
    return is_of_block && sites[use->site].line < sites[by->site].line;
}

static void verify(const struct word_uses *uses, const struct doing *by) {
    for (unsigned which = USE_READ; which <= USE_READ_TOO; which++) {
        const struct word_use *use = &uses->all[which];
        if (use->moment < block_order_begun() || !verifies(by, use)) continue;
        guesses_verify(&guesses, instruction_of(use->site));
    }
}

static void accuse(const struct wrong_access *wrong, uint32_t thread) {
    uint64_t word = wrong->address / MEMORY_WORD_BYTES;
    if (word != accused.word || thread != accused.thread) checks_see(wrong);
    accused.word = word;
    accused.thread = thread;
}

// -- words -----------------------------------------------------------------------------------------------------------

// Which bytes of a word an access uses, a bit for each.
static unsigned bytes_in(const struct doing *doing, uint64_t word) {
    unsigned bits = 0;
    for (unsigned i = 0; i < MEMORY_WORD_BYTES; i++)
        if (word + i - doing->address < doing->bytes) bits |= 1u << i;
    return bits;
}

// Whether an access may race with one of the uses of a word, for what both do.
static bool may_race(const struct doing *doing, unsigned which, const struct word_use *use) {
    bool other_is_strong = which == USE_ATOMIC || use->is_strong;
    if (doing->what == READS && which >= USE_READ) return false;
    return !(other_is_strong && (doing->is_strong || doing->what == CHANGES));
}

static bool is_judged(uint32_t thread, uint32_t other) {
    return looked_for == RACES_OF_ALL || thread / BLOCK_THREADS_MAX != other / BLOCK_THREADS_MAX;
}

// A race that many correct programs have.
static bool is_excused(const struct doing *doing, unsigned which, const struct word_use *use,
                       const struct wrong_access *race) {
    if (looked_for == RACES_OF_ALL || settings.is_strict || which == USE_ATOMIC || doing->what == CHANGES) return false;
    bool reads = doing->what == READS, other_reads = which >= USE_READ;
    uint32_t store = reads ? use->site : doing->site;
    if (reads == other_reads) return false;
    if (!constant_stores_excuse(store, race)) return reads && chains_excuse(race);
    excused.word = race->address / MEMORY_WORD_BYTES;
    excused.thread = reads ? doing->thread : use->thread;
    excused.store = store;
    return true;
}

// A write that races with a write: of a thread whose read was excused, the read is what is wrong.
static bool was_excused(const struct doing *doing) {
    bool is_same = doing->address / MEMORY_WORD_BYTES == excused.word && doing->thread == excused.thread;
    if (!is_same) return false;
    constant_stores_accuse(excused.store);
    excused.word = 0;
    return true;
}

// Many correct programs claim a word by comparing and swapping, and others look at it by plain reads meanwhile, as in a
// search of a graph by breadth: a word that was claimed does not change any more.
static bool is_claim(uint32_t atomic_site) {
    if (looked_for == RACES_OF_ALL || settings.is_strict || !running_code.site_texts) return false;
    return strstr(running_code.site_texts[atomic_site], ".cas") != NULL;
}

static void look(const struct doing *doing, const struct word_uses *uses, unsigned bytes) {
    for (unsigned which = 0; which < USES_OF_WORD; which++) {
        const struct word_use *use = &uses->all[which];
        if (use->moment < block_order_begun() || !(use->bytes & bytes)) continue;
        if (!is_judged(doing->thread, use->thread) || !may_race(doing, which, use)) continue;
        bool other_read = which >= USE_READ;
        if (block_order_knows(doing->thread, use->thread, use->moment, other_read)) continue;
        struct wrong_access wrong = describe(doing, use, other_read);
        bool is_guess = doing->what == READS ? which == USE_ATOMIC : doing->what == CHANGES && other_read;
        if (is_excused(doing, which, use, &wrong)) continue;
        if (doing->what == WRITES && (chains_accuse(doing->thread, doing->address) || was_excused(doing))) return;
        if (!is_guess) {
            accuse(&wrong, doing->thread);
            return;
        }
        if (is_claim(other_read ? doing->site : use->site)) continue;
        guesses_keep(&guesses, &wrong, instruction_of(other_read ? use->site : doing->site));
    }
}

static void note(const struct doing *doing, struct word_uses *uses, unsigned bytes, uint32_t moment) {
    unsigned which = doing->what == WRITES ? USE_WRITE : doing->what == CHANGES ? USE_ATOMIC : USE_READ;
    const struct word_use *before = &uses->all[which];
    bool is_others = before->thread != doing->thread && before->moment >= block_order_begun();
    if (which == USE_READ && is_others) which = USE_READ_TOO;
    uses->all[which] = (struct word_use){.moment = moment,
                                         .thread = doing->thread,
                                         .site = doing->site,
                                         .bytes = bytes & 0xf,
                                         .is_strong = doing->is_strong};
}

static uint64_t first_word(const struct doing *doing) {
    return doing->address / MEMORY_WORD_BYTES * MEMORY_WORD_BYTES;
}

// Notes a row's use of a chunk, by the threads that use its words.
static void spell_row(const struct chunk *chunk, uint32_t number) {
    if (number == NO_ROW) return;
    const struct row_use *row = memory_row(number);
    uint64_t start = chunk->number * CHUNK_BYTES, end = start + CHUNK_BYTES;
    struct doing doing = {.bytes = row->each, .site = row->site, .what = row->writes ? WRITES : READS};
    for (doing.address = start; doing.address < end; doing.address += doing.bytes) {
        doing.thread = row->thread + (uint32_t)((doing.address - row->address) / row->each);
        for (uint64_t word = first_word(&doing); word < doing.address + doing.bytes; word += MEMORY_WORD_BYTES) {
            struct word_uses *uses = memory_words_find(word);
            if (!uses) return;
            note(&doing, uses, bytes_in(&doing, word), row->moment);
            if (row->released > uses->released) uses->released = row->released;
        }
    }
}

static void spell_out(struct chunk *chunk) {
    spell_row(chunk, chunk->read);
    spell_row(chunk, chunk->read_too);
    spell_row(chunk, chunk->write);
    chunk->write = chunk->read = chunk->read_too = NO_ROW;
    chunk->has_words = true;
}

// NULL: there is no room for it.
static struct word_uses *find(uint64_t word) {
    if (looked_for == RACES_OF_BLOCKS) {
        struct chunk *chunk = memory_chunk(word);
        if (!chunk) return NULL;
        if (!chunk->has_words) spell_out(chunk);
    }
    return memory_words_find(word);
}

static void use(const struct doing *doing) {
    for (uint64_t word = first_word(doing); word < doing->address + doing->bytes; word += MEMORY_WORD_BYTES) {
        struct word_uses *uses = find(word);
        if (!uses) {
            stop_looking("it uses more than 64 MiB of memory");
            return;
        }
        unsigned bytes = bytes_in(doing, word);
        look(doing, uses, bytes);
        note(doing, uses, bytes, block_order_now());
    }
}

// Who writes what is there already may go on with it as if nobody else had written it.
static void take_over(const struct doing *doing) {
    for (uint64_t word = first_word(doing); word < doing->address + doing->bytes; word += MEMORY_WORD_BYTES) {
        struct word_uses *uses = find(word);
        unsigned bytes = bytes_in(doing, word);
        const struct word_use *before = uses ? &uses->all[USE_WRITE] : NULL;
        bool is_written = before && before->moment >= block_order_begun() && !(before->bytes & ~bytes);
        if (is_written && doing->what == WRITES) note(doing, uses, bytes, block_order_now());
    }
}

static bool has_read(const struct word_uses *uses, uint32_t thread) {
    for (unsigned which = USE_READ; which <= USE_READ_TOO; which++)
        if (uses->all[which].moment >= block_order_begun() && uses->all[which].thread == thread) return true;
    return false;
}

static void note_store(const struct doing *doing, bool changes) {
    const struct word_uses *uses = find(first_word(doing));
    bool was_looked_at = !changes || (uses && has_read(uses, doing->thread));
    constant_stores_note(doing->site, doing->address, doing->bytes, was_looked_at);
}

static void settle(void) {
    if (!latest.waits) return;
    latest.waits = false;
    bool changes = memcmp((const void *)latest.doing.address, latest.before, latest.doing.bytes) != 0;
    if (looked_for == RACES_OF_BLOCKS && latest.doing.what == WRITES) note_store(&latest.doing, changes);
    if (changes || settings.is_strict)
        use(&latest.doing);
    else
        take_over(&latest.doing);
}

// -- what kernels do -------------------------------------------------------------------------------------------------

// What threads learn from each other: each write may be what another one waits for.
static void order(const struct doing *doing, uint32_t number, bool looks) {
    uint64_t first = first_word(doing), end = doing->address + doing->bytes;
    bool is_for_others = doing->is_strong || doing->what == CHANGES;
    for (uint64_t word = first; looks && word < end; word += MEMORY_WORD_BYTES) {
        const struct word_uses *uses = find(word);
        if (uses) block_order_acquire(number, uses->released < block_order_begun() ? 0 : uses->released);
    }
    uint32_t released = doing->what == READS ? 0 : block_order_release(number, is_for_others);
    for (uint64_t word = first; doing->what != READS && word < end; word += MEMORY_WORD_BYTES) {
        struct word_uses *uses = find(word);
        if (!uses) return;
        if (doing->what == CHANGES) verify(uses, doing);
        if (released > uses->released) uses->released = released;
    }
}

static void count_words(const struct doing *doing) {
    uint32_t count = (doing->bytes + MEMORY_WORD_BYTES - 1) / MEMORY_WORD_BYTES;
    if (words_left < count) stop_looking("");
    words_left -= count;
}

static bool is_of_grid(const struct access *access) {
    return access->context->grid_workspace && access->address - access->context->grid_workspace < GRID_WORKSPACE_BYTES;
}

void memory_races_see(const struct access *access, uint32_t touches, uint32_t site) {
    if (!is_looking || access->space != OF_MEMORY || access->bytes > ACCESS_BYTES_MAX || site >= SITES_MAX) return;
    settle();
    bool is_known = memory_covers(access->address) && !memory_is_of_heap(access->address);
    if (!is_looking || (!is_known && !is_of_grid(access))) return;
    follow(access->context);
    struct doing doing = {
        .address = access->address,
        .bytes = (uint32_t)access->bytes,
        .thread = block.number * BLOCK_THREADS_MAX + access->thread,
        .site = site,
        .what = access->kind == LOADS ? READS : access->kind == IS_ATOMIC ? CHANGES : WRITES,
        .is_strong = touches & (1 << TOUCH_STRONG_READ | 1 << TOUCH_STRONG_WRITE),
    };
    order(&doing, block.number, touches & 1 << TOUCH_STRONG_READ);
    if (looked_for == RACES_OF_BLOCKS) count_words(&doing);
    if (block_order_is_full()) stop_looking("its threads wait for each other too often");
    if (!is_looking || !is_known) return;
    if (doing.what == READS) {
        if (!doing.is_strong && looked_for == RACES_OF_BLOCKS)
            chains_read(access->context, doing.thread, doing.address, doing.bytes);
        if (!doing.is_strong) use(&doing);
        return;
    }
    latest.waits = true;
    latest.doing = doing;
    memcpy(latest.before, (const void *)doing.address, doing.bytes);
}

void memory_races_order_block(void) {
    if (!is_looking) return;
    settle();
    follow(watch_context());
    block_order_meet(block.number);
}

void memory_races_order_lanes(uint32_t warp, bool is_barrier) {
    if (!is_looking) return;
    settle();
    follow(watch_context());
    block_order_lanes_meet(block.number, warp, is_barrier);
}

void quiesce_kernel_fence(struct kernel_context *context, uint32_t is_for_all_blocks) {
    if (!is_looking) return;
    settle();
    follow(context);
    block_order_fence(block.number, is_for_all_blocks);
}

void memory_races_end(void) {
    if (is_looking) settle();
    if (is_looking) guesses_see(&guesses);
    if (is_looking) constant_stores_end();
    if (is_looking) chains_end();
    is_looking = false;
    checks_follow(NULL);
    block_order_end();
}

// -- rows ------------------------------------------------------------------------------------------------------------

// Whether a row meets what another block did with a chunk, and nothing orders the two.
static bool meets(const struct row_use *row, uint32_t number) {
    if (number == NO_ROW) return false;
    const struct row_use *other = memory_row(number);
    if (other->thread / BLOCK_THREADS_MAX == block.number) return false;
    return !block_order_knows(row->thread, other->thread, other->moment, !other->writes);
}

static bool meets_any(const struct row_use *row, const struct chunk *chunk) {
    if (meets(row, chunk->write)) return true;
    return row->writes && (meets(row, chunk->read) || meets(row, chunk->read_too));
}

static void note_row(struct chunk *chunk, const struct row_use *row, uint32_t number) {
    if (row->writes) {
        chunk->write = number;
        return;
    }
    bool is_others = chunk->read && memory_row(chunk->read)->thread / BLOCK_THREADS_MAX != block.number;
    *(is_others ? &chunk->read_too : &chunk->read) = number;
}

// Whether an access may be a race, as far as that is known before it: what comes before it in the text may order it,
// and only a write that changes something is one.
static bool would_race(const struct doing *doing) {
    for (uint64_t word = first_word(doing); word < doing->address + doing->bytes; word += MEMORY_WORD_BYTES) {
        const struct word_uses *uses = find(word);
        for (unsigned which = 0; uses && which < USES_OF_WORD; which++) {
            const struct word_use *use = &uses->all[which];
            if (use->moment < block_order_begun() || !(use->bytes & bytes_in(doing, word))) continue;
            if (is_judged(doing->thread, use->thread) && may_race(doing, which, use) &&
                !block_order_knows(doing->thread, use->thread, use->moment, which >= USE_READ))
                return true;
        }
    }
    return false;
}

// Uses the words of a part of a row. False: each access has to come by itself.
static bool use_words(const struct row_use *row, uint64_t start, uint64_t end) {
    struct doing doing = {.bytes = row->each, .site = row->site, .what = row->writes ? WRITES : READS};
    for (doing.address = start; doing.address < end && is_looking; doing.address += row->each) {
        doing.thread = row->thread + (uint32_t)((doing.address - row->address) / row->each);
        if (would_race(&doing)) return false;
        count_words(&doing);
        if (!is_looking) return true;
        use(&doing);
        for (uint64_t word = first_word(&doing); row->released && word < doing.address + doing.bytes;
             word += MEMORY_WORD_BYTES) {
            struct word_uses *uses = find(word);
            if (uses && row->released > uses->released) uses->released = row->released;
        }
    }
    return true;
}

static bool see_row(const struct row_use *row) {
    uint64_t end = row->address + row->bytes, next;
    uint32_t number = NO_ROW;
    for (uint64_t at = row->address; at < end && is_looking; at = next) {
        uint64_t after = (at / CHUNK_BYTES + 1) * CHUNK_BYTES;
        next = after < end ? after : end;
        struct chunk *chunk = memory_chunk(at);
        bool is_whole = next - at == CHUNK_BYTES, has_words = !chunk || chunk->has_words;
        if (is_whole && !has_words && !meets_any(row, chunk)) {
            if (number == NO_ROW) number = memory_row_add(row);
            if (number == NO_ROW) stop_looking("");
            note_row(chunk, row, number);
        } else if (!chunk) {
            stop_looking("");
        } else if ((is_whole && !has_words) || !use_words(row, at, next)) {
            return false;
        }
    }
    return true;
}

bool memory_races_see_range(const struct kernel_context *context, const struct kernel_range *range) {
    if (!is_looking || !range->counts[0] || !range->counts[1] || !range->counts[2]) return true;
    if (looked_for == RACES_OF_ALL) return false;
    uint64_t each = range->access & 0xff, kind = range->access >> 8 & 0xf;
    if (kind != LOADS && kind != STORES) return false;
    bool is_flat = range->steps[0] == (int64_t)each || range->counts[0] == 1;
    if ((!is_flat && kind == STORES) || range->site >= SITES_MAX) return false;
    settle();
    follow(context);
    struct row_use row = {.bytes = each * (is_flat ? range->counts[0] : 1),
                          .each = (uint32_t)each,
                          .site = range->site,
                          .moment = block_order_now(),
                          .released = kind == STORES ? block_order_release(block.number, false) : 0,
                          .writes = kind == STORES};
    uint32_t rows = is_flat || !range->steps[0] ? 1 : range->counts[0];
    for (uint32_t z = 0; z < range->counts[2]; z++)
        for (uint32_t y = 0; y < range->counts[1]; y++)
            for (uint32_t x = 0; x < rows; x++) {
                uint32_t line = range->first[1] + y + threads[1] * (range->first[2] + z);
                row.thread = block.number * BLOCK_THREADS_MAX + range->first[0] + x + threads[0] * line;
                row.address = range->address + (uint64_t)(range->steps[0] * x + range->steps[1] * y +
                                                          range->steps[2] * z);
                if (memory_covers(row.address) && !see_row(&row)) return false;
            }
    return true;
}
