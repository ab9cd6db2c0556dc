#include "kernels/explore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/checks.h"
#include "kernels/device_heap.h"
#include "kernels/memory_races.h"
#include "kernels/print.h"
#include "kernels/shared_checks.h"
#include "ledger/ledger.h"
#include "machine/settings.h"
#include "memory/blocks.h"

#define COPIED_BYTES_MAX (1ull << 30)

// A block of memory, with what was in it when the kernel began, and what the usual order left.
struct copied {
    char *memory, *before, *after;
    uint64_t bytes;
};

struct copies {
    struct copied *all;
    uint32_t count;
};

static bool is_copied(const struct live *block) {
    bool is_memory = (block->thing >= THING_DEVICE && block->thing <= THING_MANAGED) || block->thing == THING_HEAP;
    return block->serial && is_memory && block_bank(block->address);
}

static uint64_t bytes_in_use(uint32_t *count) {
    uint64_t bytes = 0;
    *count = 0;
    for (uint32_t i = 1; i < ledger->live_high; i++) {
        const struct live *each = ledger_live(i);
        if (!is_copied(each)) continue;
        bytes += each->size_bytes;
        ++*count;
    }
    return bytes;
}

static void drop(struct copies *copies) {
    for (uint32_t i = 0; i < copies->count; i++) {
        free(copies->all[i].before);
        free(copies->all[i].after);
    }
    free(copies->all);
    *copies = (struct copies){0};
}

static void *copy_of(const void *memory, uint64_t bytes) {
    void *made = malloc(bytes);
    return made ? memcpy(made, memory, bytes) : NULL;
}

// False: it is too much.
static bool copy_before(struct copies *copies) {
    uint32_t count;
    if (bytes_in_use(&count) > COPIED_BYTES_MAX) return false;
    *copies = (struct copies){.all = calloc(count ? count : 1, sizeof *copies->all)};
    if (!copies->all) return false;
    for (uint32_t i = 1; i < ledger->live_high; i++) {
        const struct live *each = ledger_live(i);
        if (!is_copied(each)) continue;
        struct copied *copied = &copies->all[copies->count++];
        *copied = (struct copied){.memory = (char *)each->address, .bytes = each->size_bytes};
        copied->before = copy_of(copied->memory, copied->bytes);
        if (copied->before) continue;
        drop(copies);
        return false;
    }
    return true;
}

// Blocks that the kernel left as they were have no second copy.
static bool copy_after(struct copies *copies) {
    for (uint32_t i = 0; i < copies->count; i++) {
        struct copied *each = &copies->all[i];
        if (!memcmp(each->memory, each->before, each->bytes)) continue;
        each->after = copy_of(each->memory, each->bytes);
        if (!each->after) return false;
    }
    return true;
}

static void restore(const struct copies *copies, bool is_after) {
    for (uint32_t i = 0; i < copies->count; i++) {
        const struct copied *each = &copies->all[i];
        const char *content = is_after && each->after ? each->after : each->before;
        if (memcmp(each->memory, content, each->bytes)) memcpy(each->memory, content, each->bytes);
    }
}

// How many bytes are not those that the usual order left, and where the first of them is.
static uint64_t differing(const struct copies *copies, uint64_t *first) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < copies->count; i++) {
        const struct copied *each = &copies->all[i];
        const char *content = each->after ? each->after : each->before;
        if (!memcmp(each->memory, content, each->bytes)) continue;
        for (uint64_t at = 0; at < each->bytes; at++)
            if (each->memory[at] != content[at] && !count++) *first = (uint64_t)(each->memory + at);
    }
    return count;
}

static void tell_once(const char *name, const char *why) {
    static bool was_told;
    if (!was_told) fprintf(stderr, "quiesce: kernel '%.200s' ran in one order only: %s\n", name, why);
    was_told = true;
}

static struct grid_end run_in_order(const struct kernel *kernel, struct grid grid, unsigned number) {
    grid.order = order_numbered(number, settings.seed, grid.blocks, grid.threads);
    if (grid.order.is_backwards && kernel->backwards.memory) grid.object = &kernel->backwards;
    shared_checks_begin();
    struct grid_end end = grid_run(&grid);
    shared_checks_end();
    return end;
}

// Runs it in the usual order, in which each access is one that its code can't tell to be right.
static struct grid_end run_and_look(const struct kernel *kernel, struct grid grid) {
    uint64_t blocks = (uint64_t)grid.blocks[0] * grid.blocks[1] * grid.blocks[2];
    if (!settings.checks || !memory_races_begin(kernel->name, blocks, RACES_OF_ALL))
        return run_in_order(kernel, grid, 0);
    struct grid_end end = run_in_order(kernel, grid, 0);
    memory_races_end();
    return end;
}

// Runs it again in other orders, until one leaves other bytes. One that leaves other bytes in the usual order as well
// reads something else than memory, such as a clock: nothing is known of it.
static void run_again(const struct kernel *kernel, const struct grid *grid, const struct copies *copies) {
    uint64_t first = 0, count = 0, repeated;
    unsigned number = 1;
    checks_mute(true);
    print_mute(true);
    for (; number < settings.orders && !count; number++) {
        restore(copies, false);
        struct grid_end end = run_in_order(kernel, *grid, number);
        if (end.how == ENDED_BY_USER || end.how == ENDED_BY_TIME) break;
        if (!end.how && !end.no_memory) count = differing(copies, &first);
    }
    if (count) {
        restore(copies, false);
        run_in_order(kernel, *grid, 0);
        if (differing(copies, &repeated)) count = 0;
    }
    restore(copies, true);
    print_mute(false);
    checks_mute(false);
    if (count) checks_see_order(first, count > UINT32_MAX ? UINT32_MAX : (uint32_t)count);
}

struct grid_end explore(const struct kernel *kernel, struct grid *grid) {
    struct copies copies = {0};
    uint64_t heap_calls = device_heap_calls();
    bool is_copied = copy_before(&copies);
    struct grid_end end = run_and_look(kernel, *grid);
    if (!is_copied)
        tell_once(kernel->name, "more than 1 GiB of memory is in use");
    else if (device_heap_calls() != heap_calls)
        tell_once(kernel->name, "it allocates memory on the device's heap");
    else if (!end.how && !end.no_memory && copy_after(&copies))
        run_again(kernel, grid, &copies);
    drop(&copies);
    return end;
}
