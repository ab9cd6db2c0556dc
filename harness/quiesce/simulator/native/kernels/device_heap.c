#include "kernels/device_heap.h"

#include <string.h>

#include "kernels/checks.h"
#include "kernels/heap_history.h"
#include "kernels/watch.h"
#include "ledger/ledger.h"
#include "machine/device.h"
#include "machine/settings.h"
#include "memory/blocks.h"
#include "memory/poison.h"
#include "memory/shadow.h"

enum { ALIGNMENT = 16 };  // what a heap hands out is a multiple of it

static uint64_t used_bytes[DEVICES_MAX];
static bool was_used[DEVICES_MAX];
static uint64_t calls;

static uint64_t rounded(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static struct heap_use use_by(const struct kernel_context *context, uint32_t site, uint32_t thread) {
    const struct checked_launch *launch = checks_launch();
    struct heap_use use = {
        .kernel = launch->kernel, .test = launch->test, .launch = launch->number, .code = launch->code, .site = site};
    memcpy(use.block, context->block_index, sizeof use.block);
    thread_index(thread, context->block, use.thread);
    return use;
}

// Makes a block. Returns 0 where the machine has no room for it.
static uint64_t make(unsigned device, uint64_t bytes, const struct heap_use *made) {
    const struct checked_launch *launch = checks_launch();
    uint32_t live = ledger_add((struct live){.size_bytes = bytes, .device = (uint16_t)device, .thing = THING_HEAP});
    if (!live) return 0;
    uint64_t room = bytes + settings.red_zone_bytes;
    uint64_t address = blocks_make_room(live) ? arena_take_apart(&banks[device], room, live) : 0;
    struct heap_block *block = address ? heap_history_make(address) : NULL;
    if (!block) {
        if (address) arena_give(&banks[device], block_slot(address), true);
        ledger_remove(live);
        return 0;
    }
    block->bytes = bytes;
    block->made = *made;
    blocks[live] = (struct block){.size_bytes = rounded(bytes)};
    struct live *entry = ledger_live(live);
    entry->address = address;
    entry->stack = launch->stack;
    entry->function = launch->function;
    entry->observation = launch->number;
    entry->stream = wrong_access_note_use(made, launch->stack);
    return address;
}

uint64_t quiesce_kernel_malloc(struct kernel_context *context, uint64_t bytes, uint32_t site, uint32_t thread) {
    unsigned device = checks_launch()->device;
    watch_hold();
    calls++;
    was_used[device] = true;
    uint64_t limit = device_limit_of(device, LIMIT_HEAP), taken = 0;
    if (bytes && used_bytes[device] <= limit && bytes <= limit - used_bytes[device]) {
        struct heap_use made = use_by(context, site, thread);
        taken = make(device, bytes, &made);
    }
    if (taken) used_bytes[device] += rounded(bytes);
    watch_release();
    return taken;
}

static void give_back(struct arena_slot slot) {
    uint32_t live = *slot.use;
    const struct live *entry = ledger_live(live);
    unsigned device = entry->device;
    used_bytes[device] -= rounded(entry->size_bytes);
    poison(slot.start, entry->size_bytes);
    if (shadows_are_kept) shadow_forget(slot.start, entry->size_bytes);
    ledger_remove(live);
    arena_give(&banks[device], slot, settings.recycle != RECYCLE_NEVER);
}

static void refuse(const struct kernel_context *context, uint64_t address, const struct heap_use *by) {
    uint64_t start = 0;
    bool is_of_heap = block_is_of_heap(address);
    struct wrong_access wrong = {
        .seen = SEEN_KERNEL_FREED_FOREIGN, .address = address, .site = by->site, .threads = {1, 1, 1}};
    const struct heap_block *block = is_of_heap ? heap_history_near(address, &start) : NULL;
    if (block) {
        wrong.missed.start = start;
        wrong.missed.bytes = block->bytes;
        wrong.made = &block->made;
        if (block->freed.kernel) wrong.freed = &block->freed;
        if (wrong.freed && start == address) wrong.seen = SEEN_KERNEL_FREED_TWICE;
    }
    memcpy(wrong.block, by->block, sizeof wrong.block);
    memcpy(wrong.threads, context->block, sizeof wrong.threads);
    wrong.thread = by->thread[0] + wrong.threads[0] * (by->thread[1] + wrong.threads[1] * by->thread[2]);
    checks_see(&wrong);
    checks_end_kernel(ENDED_BY_FREE);
}

void quiesce_kernel_free(struct kernel_context *context, uint64_t address, uint32_t site, uint32_t thread) {
    if (!address) return;
    watch_hold();
    calls++;
    was_used[checks_launch()->device] = true;
    struct heap_use by = use_by(context, site, thread);
    struct arena_slot slot = block_is_of_heap(address) ? block_slot(address) : (struct arena_slot){0};
    uint32_t use = block_use(slot);
    bool is_block = use && use != ARENA_DEAD && slot.start == address;
    if (is_block) {
        struct heap_block *block = (struct heap_block *)heap_history_find(address);  // they are all made here
        block->freed = by;
        give_back(slot);
    }
    watch_release();
    if (!is_block) refuse(context, address, &by);
}

enum status device_heap_set_limit(int limit, size_t bytes) {
    size_t *kept;
    enum status status = device_limit(limit, &kept);
    if (status) return status;
    if (limit == LIMIT_HEAP && was_used[device_current()]) return INVALID_VALUE;
    *kept = bytes;
    return OK;
}

uint64_t device_heap_calls(void) { return calls; }

void device_heap_reset(unsigned device) {
    for (uint32_t live = 1; used_bytes[device] && live < ledger->live_high; live++) {
        const struct live *entry = ledger_live(live);
        if (!entry->serial || entry->thing != THING_HEAP || entry->device != device) continue;
        give_back(block_slot(entry->address));
    }
    was_used[device] = false;
}

void device_heaps_close(void) {
    memset(used_bytes, 0, sizeof used_bytes);
    memset(was_used, 0, sizeof was_used);
    heap_history_close();
}
