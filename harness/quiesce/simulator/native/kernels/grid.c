#include "kernels/grid.h"

#include <string.h>

#include "kernels/room.h"
#include "kernels/block.h"
#include "kernels/checks.h"
#include "kernels/fault.h"
#include "kernels/print.h"
#include "kernels/shared_content.h"
#include "kernels/shared_words.h"
#include "kernels/watch.h"
#include "machine/hidden.h"
#include "machine/mappings.h"
#include "machine/settings.h"

enum { PARAMETERS, FIRST_OF_BLOCKS, WAITING_MAX = 1024 };  // rooms; blocks of a launch that is not cooperative

// The grid that runs. It outlives a jump out of the kernel.
static struct running {
    const struct object *object;
    struct kernel_context first;  // what the context of each block begins as
    uint64_t begun, count;        // blocks
    struct order order;
    struct room *rooms[ROOMS_MAX];  // those of the blocks that wait, and then those that are free
    unsigned waiting, made, most;      // rooms
    size_t threads_bytes, shared_bytes;
    struct {
        uint32_t size, barrier, arrivals;
    } workspace;
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
    static uint32_t turns;
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
    if (running.begun == running.count || running.waiting == running.most) return false;
    if (running.waiting == running.made && !make_room()) return false;
    struct room *room = running.rooms[running.waiting++];
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
    running.waiting--;
    memmove(&running.rooms[at], &running.rooms[at + 1], (running.waiting - at) * sizeof *running.rooms);
    running.rooms[running.waiting] = room;
}

// Lets each block that has begun run, from one on. Returns 0, or how the kernel ended. `any`: something was done.
static int give_turns(unsigned from, bool *any) {
    for (unsigned at = from; at < running.waiting;) {
        struct block *block = block_in(running.rooms[at]);
        block->context.checks = checks_bits();
        watch_block(&block->context);
        int turn = block_run(block);
        if (turn < 0) return turn;
        *any |= turn != BLOCK_SPINS;
        if (turn == BLOCK_ENDED)
            end_block(at);
        else
            at++;
    }
    return 0;
}

// One block after another, as long as none waits for another. When all that have begun do, as many more begin: a device
// has several at the same time, and may begin them in any order.
static int run_waiting_blocks(void) {
    while (running.begun < running.count || running.waiting) {
        unsigned before = running.waiting, wanted = before ? 2 * before : 1;
        bool any = false;
        while (running.waiting < wanted && begin_block()) continue;
        bool begins = running.waiting > before;
        int end = give_turns(begins ? before : 0, &any);
        if (!end && begins && before) end = give_turns(0, &any);
        if (end) return end;
        watch_spins(!any && (running.begun == running.count || running.waiting == running.most));
    }
    return 0;
}

// -- the whole -------------------------------------------------------------------------------------------------------

static int run_watched(void) {
    int how = sigsetjmp(watch_jump, 0);
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
    };
    if (!room || !make_room()) return false;
    for (uint32_t i = 0; i < object->info.parameter_bytes; i++)
        room->memory[i] = (char)HIDDEN(grid->hidden_parameters[i]);
    running.workspace.size = sizeof running.workspace;
    running.first = (struct kernel_context){
        .dynamic_shared_bytes = grid->dynamic_shared_bytes,
        .parameters = (uint64_t)room->memory,
        .shared_bytes = shared_bytes,
        .touched = grid->touched,
        .shared_words = &shared_words,
        .grid_workspace = grid->is_cooperative ? (uint64_t)&running.workspace : 0,
    };
    memcpy(running.first.grid, grid->blocks, sizeof running.first.grid);
    memcpy(running.first.block, grid->threads, sizeof running.first.block);
    return true;
}

struct grid_end grid_run(const struct grid *grid) {
    enum { USUAL_ROUNDING = 0x1f80 };
    if (!prepare(grid)) return (struct grid_end){.no_memory = true};
    uint32_t before = exchange_rounding(USUAL_ROUNDING);
    watch_block(&running.first);
    watch_begin(grid->name);
    fault_begin();
    int how = run_watched();
    fault_end();
    watch_end();
    exchange_rounding(before);
    print_end();
    struct grid_end end = {.how = how, .address = fault_address()};
    memcpy(end.block, watch_index(), sizeof end.block);
    rooms_give_back();
    return end;
}
