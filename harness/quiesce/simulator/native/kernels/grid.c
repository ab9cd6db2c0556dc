#include "kernels/grid.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "kernels/room.h"
#include "kernels/beside.h"
#include "kernels/beside_telling.h"
#include "kernels/block.h"
#include "kernels/checks.h"
#include "kernels/fault.h"
#include "kernels/print.h"
#include "kernels/ranges.h"
#include "kernels/shared_checks.h"
#include "kernels/shared_content.h"
#include "kernels/shared_words.h"
#include "kernels/stillness.h"
#include "kernels/warp.h"
#include "kernels/watch.h"
#include "kernels/workers.h"
#include "machine/hidden.h"
#include "machine/mappings.h"
#include "machine/settings.h"
#include "order/stream_handles.h"

enum { PARAMETERS, FIRST_OF_BLOCKS, WAITING_MAX = 1024 };  // rooms; blocks of a launch that is not cooperative
enum { USUAL_ROUNDING = 0x1f80, ALONE_NANOSECONDS = 20000 };
enum { FIRST_PATIENCE = 4 };  // rounds in which all blocks only look at memory, before that is looked at

// The grid that runs. It outlives a jump out of the kernel.
static struct running {
    const struct object *object;
    struct kernel_context first;  // what the context of each block begins as
    uint64_t begun, count;        // blocks
    struct order order;
    struct room *rooms[ROOMS_MAX];  // those of the blocks that wait, and then those that are free
    unsigned blocks_waiting, made, most;  // rooms
    size_t threads_bytes, shared_bytes;
    struct {
        uint32_t size, barrier, arrivals;
    } workspace;
    struct waiting waiting;  // of the threads that can't go on
    uint64_t address;        // that it had no memory at
    uint64_t clock;          // nanoseconds, when it began
    bool was_long;           // the last launch of the kernel; then this one
    atomic_uint_fast64_t turns;  // of threads of blocks that other threads of the processor ran
} running;
static struct kernel_context context;  // of a block whose threads never wait

void grids_close(void) { rooms_close(); }

// Kernels compute as IEEE 754 has it, whatever the client asked of its processor.
static uint32_t exchange_rounding(uint32_t word) {
    uint32_t before;
    __asm__ volatile("stmxcsr %0" : "=m"(before)::"memory");
    __asm__ volatile("ldmxcsr %0" ::"m"(word) : "memory");
    return before;
}

static void place(uint64_t begun, struct kernel_context *block) {
    static _Thread_local uint32_t turns;
    uint64_t number = permuted(&running.order.blocks, begun);
    block->block_turn = ++turns;
    block->checks = checks_bits();
    block->block_index[0] = (uint32_t)(number % running.first.grid[0]);
    block->block_index[1] = (uint32_t)(number / running.first.grid[0] % running.first.grid[1]);
    block->block_index[2] = (uint32_t)(number / running.first.grid[0] / running.first.grid[1]);
}

// -- blocks whose threads never wait ---------------------------------------------------------------------------------

static int run_blocks(void) {
    context = running.first;
    context.shared_base = (uint64_t)running.rooms[0]->shared;
    context.frames = running.rooms[0]->memory;
    watch_block(&context);
    for (; running.begun < running.count; running.begun++) {
        place(running.begun, &context);
        if (settings.is_strict) shared_content_begin(running.rooms[0]->shared, running.shared_bytes);
        int end = running.object->block(&context);
        shared_checks_end_block();
        if (end) return end;
    }
    return 0;
}

// -- blocks whose threads wait ---------------------------------------------------------------------------------------

static struct block *block_in(const struct room *room) { return (struct block *)room->memory; }

static size_t head_bytes(void) { return (sizeof(struct block) + 63) / 64 * 64; }

// A vector is written to memory under a mask. Where no page is there yet, a write of nothing takes the processor long.
static void touch(char *memory, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PAGE_BYTES) *(volatile char *)(memory + at) = 0;
}

static bool make_room(void) {
    struct room *room = room_take(FIRST_OF_BLOCKS + running.made, running.threads_bytes, running.shared_bytes);
    if (!room) return false;
    if (running.object->together) touch(room->memory, running.threads_bytes);
    memset(room->shared, 0, running.shared_bytes);
    running.rooms[running.made++] = room;
    return true;
}

// Begins the next block, unless there is none, or no place for it.
static bool begin_block(void) {
    if (running.begun == running.count || running.blocks_waiting == running.most) return false;
    if (running.blocks_waiting == running.made && !make_room()) return false;
    struct room *room = running.rooms[running.blocks_waiting++];
    struct block *block = block_in(room);
    block->context = running.first;
    block->context.shared_base = (uint64_t)room->shared;
    place(running.begun++, &block->context);
    if (settings.is_strict) shared_content_begin(room->shared, running.shared_bytes);
    block_open(block, running.object, &running.order, room->memory + head_bytes());
    return true;
}

// Takes a block's room from among those of blocks that wait. The others keep their order.
static void end_block(unsigned at) {
    struct room *room = running.rooms[at];
    running.blocks_waiting--;
    memmove(&running.rooms[at], &running.rooms[at + 1], (running.blocks_waiting - at) * sizeof *running.rooms);
    running.rooms[running.blocks_waiting] = room;
}

static struct waiting_place place_of(const struct block *block, unsigned number) {
    struct waiting_place place = {
        .is_there = true, .thread = number, .site = object_waits_at(block->object, block->threads[number]->state)};
    memcpy(place.block, block->context.block_index, sizeof place.block);
    return place;
}

// Notes where threads of some blocks wait: the first one, and one of another block, or else one at another place.
static void note_waiting(unsigned from, unsigned end, const struct looked *looked) {
    struct waiting *waiting = &running.waiting;
    struct waiting_place *one = &waiting->places[0], *other = &waiting->places[1];
    uint32_t state = 0;
    bool is_of_another_block = false;
    *waiting = (struct waiting){.is_for_memory = looked};
    memcpy(waiting->threads, running.first.block, sizeof waiting->threads);
    for (unsigned at = from; at < end && !is_of_another_block; at++) {
        const struct block *block = block_in(running.rooms[at]);
        for (unsigned i = 0; i < block->count && !is_of_another_block; i++) {
            if (block->threads[i]->status == THREAD_DONE) continue;
            bool is_first = !one->is_there;
            if (is_first) *one = place_of(block, i);
            if (is_first) state = block->threads[i]->state;
            is_of_another_block = memcmp(block->context.block_index, one->block, sizeof one->block);
            bool is_elsewhere = !other->is_there && block->threads[i]->state != state;
            if (is_of_another_block || is_elsewhere) *other = place_of(block, i);
        }
    }
    bool is_first = looked && looked->is_there && looked->thread == one->thread &&
                    !memcmp(looked->block, one->block, sizeof one->block);
    if (!is_first) return;
    waiting->address = looked->address;
    waiting->bytes = looked->bytes;
    one->site = looked->site;
}

// The same for a kernel that was stopped: the thread that ran, and where it waited last.
static void note_running(void) {
    struct waiting *waiting = &running.waiting;
    *waiting = (struct waiting){0};
    memcpy(waiting->threads, running.first.block, sizeof waiting->threads);
    for (unsigned at = 0; at < running.blocks_waiting; at++) {
        const struct block *block = block_in(running.rooms[at]);
        if (&block->context != watch_context() || !block->current) continue;
        waiting->places[0] = place_of(block, block->current->warp * WARP_THREADS + block->current->lane);
    }
}

// Lets each block that has begun run, from one on. Returns 0, or how the kernel ended. `any`: something was done.
static int give_turns(unsigned from, bool *any) {
    for (unsigned at = from; at < running.blocks_waiting;) {
        struct block *block = block_in(running.rooms[at]);
        block->context.checks = checks_bits();
        watch_block(&block->context);
        int turn = block_run(block);
        if (turn == BLOCK_ENDED) shared_checks_end_block();
        if (turn == ENDED_WAITING) note_waiting(at, at + 1, NULL);
        if (turn < 0) return turn;
        *any |= turn != BLOCK_SPINS;
        if (turn == BLOCK_ENDED)
            end_block(at);
        else
            at++;
    }
    return 0;
}

static uint64_t content_of_rooms(void) {
    uint64_t sum = 0;
    for (unsigned at = 0; at < running.blocks_waiting; at++) {
        const uint64_t *word = (const uint64_t *)running.rooms[at]->memory;
        for (size_t i = 0; i < running.rooms[at]->bytes / sizeof *word; i++)
            sum = (sum ^ word[i]) * 0x9e3779b97f4a7c15 + (sum >> 29);
    }
    return sum;
}

static void set_checks(void) {
    void *bits = checks_bits();
    for (unsigned at = 0; at < running.blocks_waiting; at++) block_in(running.rooms[at])->context.checks = bits;
}

// Notes the thread that looked at memory which work of another stream may change.
static void note_awaiting(const struct looked *looked) {
    struct waiting_place *place = &running.waiting.places[0];
    running.waiting = (struct waiting){.is_for_memory = true, .address = looked->address, .bytes = looked->bytes};
    memcpy(running.waiting.threads, running.first.block, sizeof running.waiting.threads);
    *place = (struct waiting_place){.is_there = true, .thread = looked->thread, .site = looked->site};
    memcpy(place->block, looked->block, sizeof place->block);
}

// Lets all blocks look at memory once more, and compares all that they could have changed. Returns ENDED_WAITING where
// that is nothing, ENDED_AWAITING where work of other streams could, 0, or how the kernel ended.
static int look_once_more(void) {
    struct looked looked = {0}, awaited = {0};
    bool any = false;
    uint64_t before = content_of_rooms();
    if (!stillness_begin()) return 0;
    set_checks();
    int end = give_turns(0, &any);
    bool is_still = stillness_end(&looked, &awaited);
    set_checks();
    if (end || any || !is_still || before != content_of_rooms()) return end;
    if (running.begun < running.count) return ENDED_CROWDED;
    if (awaited.is_there && stream_may_run_beside(checks_launch()->stream, checks_launch()->device)) {
        note_awaiting(&awaited);
        return ENDED_AWAITING;
    }
    note_waiting(0, running.blocks_waiting, &looked);
    return ENDED_WAITING;
}

// One block after another, as long as none waits for another. When all that have begun do, as many more begin: a device
// has several at the same time, and may begin them in any order.
static int run_waiting_blocks(void) {
    unsigned rounds = 0, patience = FIRST_PATIENCE;
    while (running.begun < running.count || running.blocks_waiting) {
        unsigned before = running.blocks_waiting, wanted = before ? 2 * before : 1;
        bool any = false;
        while (running.blocks_waiting < wanted && begin_block()) continue;
        bool begins = running.blocks_waiting > before;
        int end = give_turns(begins ? before : 0, &any);
        if (!end && begins && before) end = give_turns(0, &any);
        if (end) return end;
        rounds = any ? 0 : rounds + 1;
        if (any) patience = FIRST_PATIENCE;
        if (rounds >= patience) {
            end = look_once_more();
            patience *= 2;
        }
        if (end) return end;
        watch_spins(!any && (running.begun == running.count || running.blocks_waiting == running.most));
    }
    return 0;
}

// -- blocks that run at the same time ---------------------------------------------------------------------------------

// What each thread of the processor has. They take the next blocks from one count.
static struct hand {
    struct kernel_context context;
    struct room *room;
    struct beside *beside;    // NULL: nothing is checked
    uint64_t block, address;  // that runs, or ran last; that it had no memory at
    int end;
} hands[WORKERS_MAX];
static atomic_uint_fast64_t next_block, end_of_blocks;  // blocks from the latter on need not run
static uint64_t blocks_each;
static atomic_bool others_run;

static int run_block_of(struct hand *hand) {
    if (!running.object->info.suspends) return running.object->block(&hand->context);
    struct block *block = block_in(hand->room);
    block->context = hand->context;
    block_open(block, running.object, &running.order, hand->room->memory + head_bytes());
    int turn;
    while ((turn = block_run(block)) > BLOCK_ENDED) continue;
    running.turns += block_turns_take();
    return turn;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void run_beside(unsigned number);

static bool was_long(void) { return now() - running.clock >= ALONE_NANOSECONDS; }

// The others begin when the first one has run for a while, unless the last launch of the kernel took that long: most
// launches have come to their end by then.
static void call_others(void) {
    if (!running.was_long && !was_long()) return;
    atomic_store(&others_run, true);
    watch_hold();
    workers_begin(running.made - 1, run_beside);
    watch_release();
}

static int run_blocks_of(struct hand *hand) {
    for (;;) {
        if (!atomic_load(&others_run)) call_others();
        uint64_t each = atomic_load(&others_run) ? blocks_each : 1;
        uint64_t first = atomic_fetch_add(&next_block, each), end = first + each;
        for (uint64_t number = first; number < end; number++) {
            if (number >= atomic_load(&end_of_blocks)) return 0;
            hand->block = number;
            if (hand->beside) hand->beside->block = number;
            place(number, &hand->context);
            memset(hand->room->shared, 0, running.shared_bytes);  // whichever block this thread ran before
            int how = run_block_of(hand);
            shared_checks_end_block();
            if (how) return how;
        }
    }
}

// A thread has what it finds to itself, where accesses are checked.
static void enter(unsigned number) {
    beside = hands[number].beside;
    if (!beside) return;
    ranges_begin();
    shared_checks_enter(number);
}

static void leave(void) {
    if (beside) shared_checks_leave();
    beside = NULL;
}

static int run_hand(struct hand *hand) {
    int how = sigsetjmp(watch_jump, 0);
    return how ? how : run_blocks_of(hand);
}

// Those before the block that ended a kernel come to their end, as if they had run alone.
static void end_hand(struct hand *hand, int how) {
    uint_fast64_t end = atomic_load(&end_of_blocks);
    shared_checks_end_block();
    hand->end = how;
    hand->address = fault_address();
    if (how)
        while (hand->block < end && !atomic_compare_exchange_weak(&end_of_blocks, &end, hand->block)) continue;
}

static void run_beside(unsigned number) {
    struct hand *hand = &hands[number];
    exchange_rounding(USUAL_ROUNDING);
    enter(number);
    checks_begin_beside();
    fault_run_beside(true);
    end_hand(hand, run_hand(hand));
    fault_run_beside(false);
    leave();
}

static void open_hands(void) {
    enum { PARTS = 16 };  // of the blocks, for each thread
    for (unsigned i = 0; i < running.made; i++) {
        hands[i] = (struct hand){.context = running.first, .room = running.rooms[i]};
        hands[i].context.shared_base = (uint64_t)running.rooms[i]->shared;
        hands[i].context.frames = running.rooms[i]->memory;
        if (!settings.checks) continue;
        hands[i].beside = beside_of(i);
        hands[i].context.touched = hands[i].beside->touched;
        hands[i].context.shared_words = shared_checks_beside(i);
    }
    blocks_each = running.count / (PARTS * running.made) + 1;
    atomic_store(&next_block, 0);
    atomic_store(&others_run, false);
    atomic_store(&end_of_blocks, running.count);
}

// The first block that did not come to its end. Of those that were stopped it is the first one, too.
static struct hand *first_ended(void) {
    struct hand *first = NULL;
    for (unsigned i = 0; i < running.made; i++)
        if (hands[i].end && (!first || hands[i].block < first->block)) first = &hands[i];
    return first;
}

static int run_at_once(void) {
    open_hands();
    watch_block(&hands[0].context);
    running.clock = now();
    enter(0);
    end_hand(&hands[0], run_hand(&hands[0]));
    leave();
    bool stops = hands[0].end == ENDED_BY_USER || hands[0].end == ENDED_BY_TIME;
    watch_hold();
    do {
        stops |= watch_is_interrupted();
        if (!stops) continue;
        atomic_store(&end_of_blocks, 0);
        workers_stop();
    } while (!workers_wait());
    enum kernel_end given_up = watch_give_up();
    running.was_long = was_long();
    if (settings.checks) {
        beside_tell(running.made, checks_launch(), stops);
        shared_checks_gather(running.made, running.first.grid);
    }
    const struct hand *first = first_ended();
    if (!first) return stops ? given_up : 0;
    bool suspends = running.object->info.suspends;
    running.blocks_waiting = suspends ? running.made : 0;
    watch_block(suspends ? &block_in(first->room)->context : &first->context);
    unsigned number = (unsigned)(first - hands);
    if (first->end == ENDED_WAITING) note_waiting(number, number + 1, NULL);
    running.address = first->address;
    return first->end;
}

// -- the whole -------------------------------------------------------------------------------------------------------

static int run_watched(void) {
    if (running.made > 1) return run_at_once();
    int how = sigsetjmp(watch_jump, 0);
    running.address = fault_address();
    if (how) return how;
    return running.object->info.suspends ? run_waiting_blocks() : run_blocks();
}

static bool prepare(const struct grid *grid) {
    const struct object *object = grid->object;
    bool suspends = object->info.suspends;
    uint32_t shared_bytes = object->info.static_shared_bytes + grid->dynamic_shared_bytes;
    struct room *room = room_take(PARAMETERS, object->info.parameter_bytes, 0);
    running = (struct running){
        .object = object,
        .count = (uint64_t)grid->blocks[0] * grid->blocks[1] * grid->blocks[2],
        .order = grid->order,
        .most = grid->is_cooperative ? ROOMS_MAX - FIRST_OF_BLOCKS : WAITING_MAX,
        .threads_bytes = (suspends ? head_bytes() : 0) + block_bytes(object, grid->threads),
        .shared_bytes = shared_bytes,
        .was_long = grid->was_long,
    };
    if (!room || !make_room()) return false;
    unsigned most = settings.checks && grid->threads_at_once > 1 ? beside_open(grid->threads_at_once)
                                                                 : grid->threads_at_once;
    while (running.made < most && make_room()) continue;
    for (uint32_t i = 0; i < object->info.parameter_bytes; i++)
        room->memory[i] = (char)HIDDEN(grid->hidden_parameters[i]);
    if (grid->only) {
        running.begun = grid->only[0] + grid->blocks[0] * (grid->only[1] + (uint64_t)grid->blocks[1] * grid->only[2]);
        running.count = running.begun + 1;
    }
    running.workspace.size = sizeof running.workspace;
    running.first = (struct kernel_context){
        .dynamic_shared_bytes = grid->dynamic_shared_bytes,
        .parameters = (uint64_t)room->memory,
        .shared_bytes = shared_bytes,
        .touched = grid->touched,
        .shared_words = shared_words,
        .grid_workspace = grid->is_cooperative ? (uint64_t)&running.workspace : 0,
    };
    memcpy(running.first.grid, grid->blocks, sizeof running.first.grid);
    memcpy(running.first.block, grid->threads, sizeof running.first.block);
    return true;
}

struct grid_end grid_run(const struct grid *grid) {
    if (!prepare(grid)) return (struct grid_end){.no_memory = true};
    uint32_t before = exchange_rounding(USUAL_ROUNDING);
    block_turns_take();
    watch_block(&running.first);
    watch_begin(grid->name);
    fault_begin();
    int how = run_watched();
    fault_end();
    watch_end();
    exchange_rounding(before);
    print_end();
    if (how == ENDED_BY_USER || how == ENDED_BY_TIME) note_running();
    struct grid_end end = {
        .how = how, .address = running.address, .waiting = running.waiting, .was_long = running.was_long,
        .turns = running.turns + block_turns_take()};
    memcpy(end.block, how == ENDED_AWAITING ? running.waiting.places[0].block : watch_index(), sizeof end.block);
    rooms_give_back();
    return end;
}
