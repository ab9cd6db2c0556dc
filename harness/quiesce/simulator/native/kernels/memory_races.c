#include "kernels/memory_races.h"

#include <stdio.h>
#include <string.h>

#include "kernels/block_order.h"
#include "kernels/guesses.h"
#include "kernels/memory_words.h"
#include "kernels/touched.h"
#include "kernels/watch.h"
#include "memory/places.h"

enum { ACCESS_BYTES_MAX = 32 };

// What a thread does to memory.
struct doing {
    uint64_t address;
    uint32_t bytes, thread, site;  // thread: of the grid
    enum { READS, WRITES, CHANGES } what;  // changes: by an atomic operation
    bool is_strong;                // volatile, relaxed, acquire, release
};

static bool is_looking;
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

static void stop_looking(const char *why) {
    static bool was_told;
    if (!was_told) fprintf(stderr, "quiesce: races of blocks of kernel '%.200s' are not looked for: %s\n", kernel, why);
    was_told = true;
    is_looking = false;
}

bool memory_races_are_looked_for(void) { return is_looking; }

bool memory_races_begin(const char *name, uint64_t count) {
    kernel = name;
    is_looking = latest.waits = false;
    guesses_begin(&guesses);
    block.turn = 0;
    accused.word = 0;
    if (count > GRID_BLOCKS_MAX)
        stop_looking("it has more than 4,194,304 blocks");
    else if (!memory_words_make_room() || !block_order_begin(count))
        stop_looking("this machine has no memory for it");
    else
        is_looking = true;
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

static void verify(const struct word_uses *uses, const struct doing *by) {
    for (unsigned which = USE_READ; which <= USE_READ_TOO; which++) {
        const struct word_use *use = &uses->all[which];
        if (use->moment >= block_order_begun() && use->thread == by->thread) guesses_verify(&guesses, use->site);
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

static void look(const struct doing *doing, const struct word_uses *uses, unsigned bytes) {
    for (unsigned which = 0; which < USES_OF_WORD; which++) {
        const struct word_use *use = &uses->all[which];
        if (use->moment < block_order_begun() || !(use->bytes & bytes)) continue;
        if (!may_race(doing, which, use)) continue;
        bool other_read = which >= USE_READ;
        if (block_order_knows(doing->thread, use->thread, use->moment, other_read)) continue;
        struct wrong_access wrong = describe(doing, use, other_read);
        bool is_guess = doing->what == READS ? which == USE_ATOMIC : doing->what == CHANGES && other_read;
        if (!is_guess) {
            accuse(&wrong, doing->thread);
            return;
        }
        guesses_keep(&guesses, &wrong, other_read ? use->site : doing->site);
    }
}

static void note(const struct doing *doing, struct word_uses *uses, unsigned bytes) {
    unsigned which = doing->what == WRITES ? USE_WRITE : doing->what == CHANGES ? USE_ATOMIC : USE_READ;
    const struct word_use *before = &uses->all[which];
    bool is_others = before->thread != doing->thread && before->moment >= block_order_begun();
    if (which == USE_READ && is_others) which = USE_READ_TOO;
    uses->all[which] = (struct word_use){.moment = block_order_now(),
                                         .thread = doing->thread,
                                         .site = doing->site,
                                         .bytes = bytes & 0xf,
                                         .is_strong = doing->is_strong};
}

static void use(const struct doing *doing) {
    uint64_t first = doing->address / MEMORY_WORD_BYTES * MEMORY_WORD_BYTES;
    for (uint64_t word = first; word < doing->address + doing->bytes; word += MEMORY_WORD_BYTES) {
        struct word_uses *uses = memory_words_find(word);
        if (!uses) {
            stop_looking("it uses more than 64 MiB of memory");
            return;
        }
        unsigned bytes = bytes_in(doing, word);
        look(doing, uses, bytes);
        note(doing, uses, bytes);
    }
}

static void settle(void) {
    if (!latest.waits) return;
    latest.waits = false;
    if (memcmp((const void *)latest.doing.address, latest.before, latest.doing.bytes)) use(&latest.doing);
}

// -- what kernels do -------------------------------------------------------------------------------------------------

// What threads learn from each other: each write may be what another one waits for.
static void order(const struct doing *doing, uint32_t number, bool looks) {
    uint64_t first = doing->address / MEMORY_WORD_BYTES * MEMORY_WORD_BYTES;
    uint64_t end = doing->address + doing->bytes;
    bool is_for_others = doing->is_strong || doing->what == CHANGES;
    for (uint64_t word = first; looks && word < end; word += MEMORY_WORD_BYTES) {
        const struct word_uses *uses = memory_words_find(word);
        if (uses) block_order_acquire(number, uses->released < block_order_begun() ? 0 : uses->released);
    }
    uint32_t released = doing->what == READS ? 0 : block_order_release(number, is_for_others);
    for (uint64_t word = first; doing->what != READS && word < end; word += MEMORY_WORD_BYTES) {
        struct word_uses *uses = memory_words_find(word);
        if (!uses) return;
        if (doing->what == CHANGES) verify(uses, doing);
        if (released > uses->released) uses->released = released;
    }
}

static bool is_of_grid(const struct access *access) {
    return access->context->grid_workspace && access->address - access->context->grid_workspace < GRID_WORKSPACE_BYTES;
}

void memory_races_see(const struct access *access, uint32_t touches, uint32_t site) {
    if (!is_looking || access->space != OF_MEMORY || access->bytes > ACCESS_BYTES_MAX || site >= SITES_MAX) return;
    settle();
    bool is_known = memory_covers(access->address);
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
    if (block_order_is_full()) stop_looking("its threads wait for each other too often");
    if (!is_looking || !is_known) return;
    if (doing.what == READS) {
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
    is_looking = false;
    block_order_end();
}
