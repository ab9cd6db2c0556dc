#include "kernels/checks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/access_log.h"
#include "kernels/beside.h"
#include "kernels/heap_history.h"
#include "kernels/memory_rows.h"
#include "kernels/memory_words.h"
#include "kernels/touched.h"
#include "kernels/watch.h"
#include "kernels/wrong_access.h"
#include "ledger/ledger.h"
#include "ledger/unsimulated.h"
#include "machine/device.h"
#include "machine/settings.h"
#include "memory/blocks.h"
#include "memory/memory.h"
#include "memory/places.h"
#include "memory/registered.h"
#include "memory/shadow.h"
#include "memory/virtual.h"

static struct checked_launch running;
static bool is_muted;
static follow_access *follow;
static void *bits;  // that kernels look at
static _Thread_local uint64_t stack_end;  // the threads of a kernel use the stack below it

// What a wrong access is answered with: loads read zeros there, and nobody reads what stores write.
static _Thread_local char nobodys[64] __attribute__((aligned(64)));

void checks_begin(const struct checked_launch *launch) {
    running = *launch;
    running_code = launch->code;
    follow = NULL;  // a kernel may have been left by a jump
    bits = shadow_of(launch->device);
    checks_begin_beside();
}

void checks_begin_beside(void) { stack_end = (uint64_t)__builtin_frame_address(0); }

void checks_mute(bool mute) {
    if (mute)
        touched_end(&running, false);
    else
        touched_drop();
    is_muted = mute;
}

const struct checked_launch *checks_launch(void) { return &running; }

void checks_end_kernel(enum kernel_end how) {
    if (!is_muted) watch_leave(how);
}

bool checks_follow(follow_access *each) {
    void *nothing = each ? shadow_of_nothing() : NULL;
    if (each && !nothing) return false;
    follow = each;
    bits = each ? nothing : shadow_of(running.device);
    return true;
}

follow_access *checks_follower(void) { return follow; }

uint32_t quiesce_kernel_follows(struct kernel_context *context) {
    (void)context;
    return follow != NULL;
}

void *checks_bits(void) { return bits; }
void *checks_bits_of_memory(void) { return shadow_of(running.device); }

bool checks_is_argument(const struct kernel_context *context, uint64_t value) {
    for (uint32_t at = 0; at + sizeof value <= running.parameter_bytes; at += sizeof value)
        if (!memcmp((const char *)context->parameters + at, &value, sizeof value)) return true;
    return false;
}

void checks_see(const struct wrong_access *wrong) {
    if (is_muted) return;
    if (beside) {
        beside_see(wrong);
        return;
    }
    watch_hold();
    wrong_access_see(&running, wrong, 1);
    watch_release();
}

void checks_see_waiting(const struct waiting *waiting) {
    const struct waiting_place *one = &waiting->places[0], *other = &waiting->places[1];
    enum seen seen = waiting->is_for_memory ? SEEN_KERNEL_LOOKS_FOR_EVER : SEEN_KERNEL_WAITS_FOR_EVER;
    struct wrong_access wrong = {.seen = seen,
                                 .address = waiting->address,
                                 .bytes = waiting->bytes,
                                 .site = one->site,
                                 .thread = one->thread};
    memcpy(wrong.block, one->block, sizeof wrong.block);
    memcpy(wrong.threads, waiting->threads, sizeof wrong.threads);
    if (other->is_there) {
        wrong.other = (struct other_access){.is_there = true, .site = other->site, .code = running_code};
        thread_index(other->thread, waiting->threads, wrong.other.thread);
        memcpy(wrong.other.block, other->block, sizeof wrong.other.block);
    }
    checks_see(&wrong);
}

void checks_see_order(uint64_t address, uint32_t bytes) {
    checks_see(&(struct wrong_access){.seen = SEEN_KERNEL_DEPENDS_ON_ORDER,
                                      .address = address,
                                      .bytes = bytes,
                                      .writes = true,
                                      .site = NO_SITE,
                                      .threads = {1, 1, 1}});
}

void checks_end(bool by_user) {
    touched_end(&running, by_user);
    wrong_accesses_tell();
}

void checks_close(void) {
    beside_close();
    touched_close();
    memory_words_close();
    memory_rows_close();
    wrong_accesses_close();
}

static bool lies_in(const struct access *access, uint64_t start, uint64_t bytes) {
    uint64_t before = access->address - start;
    return before < bytes && access->bytes <= bytes - before;
}

// Where the local memory of a thread that waits is; 0: nowhere. A function that is called is not told: the threads of a
// block have theirs one after another, before the arrays of their registers.
static uint64_t frame_of(const struct access *access) {
    const struct kernel_context *context = access->context;
    const uint32_t *block = context->block;
    if (access->frame) return (uint64_t)access->frame;
    if (!running.frame_bytes || !context->frames) return 0;
    uint64_t each = kernel_thread_bytes(running.frame_bytes), all = each * block[0] * block[1] * block[2];
    return (uint64_t)context->frames - all + each * access->thread;
}

// Memory of a block and of its threads, named by generic addresses.
static bool is_of_threads(const struct access *access) {
    const struct kernel_context *context = access->context;
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    if (lies_in(access, context->shared_base, context->shared_bytes)) return true;
    if (context->grid_workspace && lies_in(access, context->grid_workspace, GRID_WORKSPACE_BYTES)) return true;
    if (lies_in(access, context->parameters, running.parameter_bytes)) return true;
    uint64_t frame_bytes = sizeof(struct kernel_thread) + running.frame_bytes;
    uint64_t frame = frame_of(access);
    if (frame && lies_in(access, frame, frame_bytes)) return true;
    return access->address > here && access->address < stack_end;
}

// Whose local memory an address lies in: threads that wait have theirs one after another. False: in nobody's.
static bool find_owner(const struct access *access, uint32_t *owner) {
    const uint32_t *block = access->context->block;
    uint64_t frame = frame_of(access), each = kernel_thread_bytes(running.frame_bytes);
    if (!frame) return false;
    uint64_t within = access->address - (frame - each * access->thread), all = each * block[0] * block[1] * block[2];
    *owner = (uint32_t)(within / each);
    return within < all && *owner != access->thread;
}

static enum seen judge_mapped(const struct access *access) {
    struct span span = memory_find(access->address);
    struct virtual_location device = {1, (int)running.device};
    unsigned long long rights = 0;
    if (virtual_get_access(access->address, &device, &rights))
        return span.dead ? SEEN_KERNEL_USED_FREED : SEEN_KERNEL_OUT_OF_BOUNDS;
    if (!rights) return SEEN_KERNEL_OTHER_DEVICE;
    if (rights == 1 && access->kind != LOADS) return SEEN_KERNEL_READ_ONLY;
    return lies_in(access, span.start, span.size_bytes) ? SEEN_NOTHING : SEEN_KERNEL_OUT_OF_BOUNDS;
}

// Memory that was to be written by something that is not executed here is no mistake of the program.
static bool is_all_written(void) { return ledger->computed == ledger->launches && !unsimulated_was_called(); }

static enum seen judge_content(const struct access *access, unsigned device) {
    unsigned written = shadow_count(device, access->address, (unsigned)access->bytes);
    bool unwritten = access->kind != STORES && written < (settings.is_strict ? access->bytes : 1);
    return unwritten && is_all_written() ? SEEN_KERNEL_READ_UNWRITTEN : SEEN_NOTHING;
}

static enum seen judge_heap(const struct access *access) {
    struct arena_slot slot = block_slot(access->address);
    uint32_t use = block_use(slot);
    const struct live *block = use && use != ARENA_DEAD ? ledger_live(use) : NULL;
    if (block && lies_in(access, slot.start, block->size_bytes))
        return device_may_use(running.device, block->device) ? judge_content(access, block->device)
                                                             : SEEN_KERNEL_OTHER_DEVICE;
    const struct heap_block *known = use == ARENA_DEAD ? heap_history_find(slot.start) : NULL;
    if (known && access->address - slot.start < known->bytes) return SEEN_KERNEL_FREED_IN_HEAP;
    uint64_t start;
    return heap_history_near(access->address, &start) ? SEEN_KERNEL_OUTSIDE_HEAP : SEEN_KERNEL_OUT_OF_BOUNDS;
}

// Of memory that a stream's free is still to come to, the ledger knows no more.
static enum seen judge_block(const struct access *access) {
    if (block_is_of_heap(access->address)) return judge_heap(access);
    struct span span = memory_find(access->address);
    uint64_t start = block_slot(access->address).start;
    if (span.dead) span.dead = !shadow_is_leaving(start, &span.start, &span.size_bytes);
    if (span.dead) {
        bool was_used = block_use(block_slot(access->address)) != 0;
        return was_used && !wrong_access_is_just_before_a_block(access->address) ? SEEN_KERNEL_USED_FREED
                                                                                : SEEN_KERNEL_OUT_OF_BOUNDS;
    }
    if (!lies_in(access, span.start, span.size_bytes)) return SEEN_KERNEL_OUT_OF_BOUNDS;
    if (span.thing != THING_DEVICE) return SEEN_NOTHING;
    if (!memory_is_open_to(running.device, access->address, span.device)) return SEEN_KERNEL_OTHER_DEVICE;
    if (access->kind != LOADS && is_constant(access->address)) return SEEN_KERNEL_READ_ONLY;
    return judge_content(access, span.device);
}

// Of memory that is none of a device.
static enum seen judge_strange(const struct access *access) {
    uint32_t owner;
    if (wrong_access_is_near_a_block(access->address)) return SEEN_KERNEL_OUT_OF_BOUNDS;
    return find_owner(access, &owner) ? SEEN_KERNEL_OTHERS_LOCAL : SEEN_KERNEL_NO_MEMORY;
}

enum seen checks_judge(const struct access *access) {
    if (access->space == OF_LOCAL) return SEEN_KERNEL_OUTSIDE_LOCAL;
    if (access->space == OF_SHARED)
        return lies_in(access, access->context->shared_base, access->context->shared_bytes)
                   ? SEEN_NOTHING
                   : SEEN_KERNEL_OUTSIDE_SHARED;
    bool is_known = memory_covers(access->address);
    if (!is_known && !is_of_threads(access)) {
        struct span span = registered_find(access->address);
        if (span.thing == THING_NONE || !lies_in(access, span.start, span.size_bytes))
            return judge_strange(access);
    }
    if (!is_known) return SEEN_NOTHING;
    return block_bank(access->address) ? judge_block(access) : judge_mapped(access);
}

// A misaligned access that is near nothing is first of all one to no memory.
static enum seen judge(const struct access *access) {
    enum seen seen = checks_judge(access);
    bool is_misaligned = access->address % access->bytes, is_somewhere = memory_covers(access->address);
    if (is_misaligned && access->space != OF_LOCAL && (!seen || is_somewhere)) return SEEN_KERNEL_MISALIGNED;
    bool is_right = !seen || seen == SEEN_KERNEL_READ_UNWRITTEN;
    if (is_right && access->kind != LOADS) shadow_write(access->address, access->bytes);
    return seen;
}

static enum seen judge_alone(const struct access *access) {
    beside_lock();
    enum seen seen = judge(access);
    beside_unlock();
    return seen;
}

// It is here only because it is the first use of its cell.
static bool is_right_at_once(const struct access *access) {
    return access->space == OF_MEMORY && !(access->address % access->bytes) &&
           !(access->kind != LOADS && is_constant(access->address)) &&
           shadow_is_whole(shadow_of(running.device), access->address, access->bytes);
}

static struct access access_of(const struct kernel_context *context, uint64_t address, uint32_t word, uint32_t thread,
                               const void *frame) {
    return (struct access){.context = context,
                           .address = address,
                           .bytes = word & 0xff,
                           .kind = (enum access_kind)(word >> 8 & 0xf),
                           .space = (enum access_space)(word >> 12 & 0xf),
                           .frame = frame,
                           .thread = thread};
}

static bool has_null_argument(const struct kernel_context *context) {
    for (uint32_t at = 0; at + sizeof(uint64_t) <= running.parameter_bytes; at += sizeof(uint64_t))
        if (!*(const uint64_t *)(context->parameters + at)) return true;
    return false;
}

// Whether an address is an index of a null pointer. No process has memory near 0; at a larger index, an argument of the
// kernel has to be null, and no memory of the host's there.
static bool is_of_null(const struct kernel_context *context, uint64_t address) {
    enum { PAGE = 4096 };
    const uint64_t near = 1 << 16, far = 1ull << 36;
    if (address < near || -address <= near) return true;
    if ((address >= far && -address > far) || !has_null_argument(context)) return false;
    return msync((void *)(address / PAGE * PAGE), 1, MS_ASYNC) != 0;
}

static void describe_heap(struct wrong_access *wrong) {
    const struct heap_block *block = heap_history_near(wrong->address, &wrong->missed.start);
    if (!block) return;
    wrong->missed.bytes = block->bytes;
    wrong->made = &block->made;
    if (block->freed.kernel) wrong->freed = &block->freed;
}

static struct wrong_access describe(const struct access *access, enum seen seen, uint32_t site) {
    const struct kernel_context *context = access->context;
    uint32_t owner;
    struct wrong_access wrong = {.seen = seen,
                                 .address = access->address - (access->space == OF_SHARED ? context->shared_base : 0),
                                 .bytes = (unsigned)access->bytes,
                                 .writes = access->kind != LOADS,
                                 .site = site,
                                 .thread = access->thread,
                                 .shared_bytes = context->shared_bytes};
    memcpy(wrong.block, context->block_index, sizeof wrong.block);
    memcpy(wrong.threads, context->block, sizeof wrong.threads);
    if (seen == SEEN_KERNEL_READ_UNWRITTEN)
        wrong.is_partly = shadow_count(running.device, access->address, (unsigned)access->bytes) != 0;
    if (seen == SEEN_KERNEL_OUTSIDE_HEAP || seen == SEEN_KERNEL_FREED_IN_HEAP) describe_heap(&wrong);
    if (seen == SEEN_KERNEL_NO_MEMORY) wrong.is_of_null = is_of_null(context, access->address);
    if (seen == SEEN_KERNEL_OTHERS_LOCAL && find_owner(access, &owner)) {
        wrong.other = (struct other_access){.is_there = true, .site = NO_SITE};
        thread_index(owner, context->block, wrong.other.thread);
    }
    return wrong;
}

// The memory that a wrong access uses instead, unless the kernel ends.
static void *instead_of(enum seen seen) {
    if (settings.faults_stop && !is_muted)
        watch_leave(seen == SEEN_KERNEL_MISALIGNED ? ENDED_MISALIGNED : ENDED_BY_ACCESS);
    memset(nobodys, 0, sizeof nobodys);
    return nobodys;
}

// An access to shared memory that leaves its array uses what comes next, as on a device.
static void *use_array(const struct access *access, uint32_t site) {
    const struct kernel_array *array = access->space == OF_SHARED ? wrong_access_array(site) : NULL;
    uint64_t offset = access->address - access->context->shared_base;
    bool is_inside = !array || (offset - array->offset < array->bytes &&
                                access->bytes <= array->bytes - (offset - array->offset));
    if (!is_inside) {
        struct wrong_access wrong = describe(access, SEEN_KERNEL_OUTSIDE_ARRAY, site);
        wrong.missed.start = array->offset;
        wrong.missed.bytes = array->bytes;
        checks_see(&wrong);
    }
    return (void *)access->address;
}

void *quiesce_kernel_check(struct kernel_context *context, uint64_t address, uint32_t word, uint32_t site,
                           uint32_t thread, const void *frame) {
    struct access access = access_of(context, address, word, thread, frame);
    uint32_t touches = word >> 16;  // a bit for each, see touched.h
    enum seen seen = is_right_at_once(&access) ? SEEN_NOTHING : judge_alone(&access);
    if (!seen || seen == SEEN_KERNEL_READ_UNWRITTEN) {
        touched_note(address, touches, site);
        if (follow) follow(&access, touches, site);
    }
    if (!seen) return use_array(&access, site);
    struct wrong_access wrong = describe(&access, seen, site);
    checks_see(&wrong);
    if (seen == SEEN_KERNEL_READ_UNWRITTEN) return (void *)address;
    touched_forget(address, (unsigned)access.bytes, touches);
    return instead_of(seen);
}

void *quiesce_kernel_outside_local(struct kernel_context *context, uint64_t address, uint32_t word, uint32_t site,
                                   uint32_t thread, uint64_t start, uint64_t bytes) {
    struct access access = access_of(context, address, word, thread, NULL);
    struct wrong_access wrong = describe(&access, SEEN_KERNEL_OUTSIDE_LOCAL, site);
    wrong.missed.start = start;
    wrong.missed.bytes = bytes;
    checks_see(&wrong);
    return instead_of(wrong.seen);
}

void *quiesce_kernel_check_copy(struct kernel_context *context, uint64_t address, uint32_t word, uint32_t site,
                                uint32_t thread, const void *frame, uint64_t bytes) {
    bool is_wrong = false;
    uint64_t part = word & 0xff;
    for (uint64_t at = address; at < address + bytes; at += part)
        is_wrong |= quiesce_kernel_check(context, at, word, site, thread, frame) != (void *)at;
    return is_wrong ? nobodys : (void *)address;
}

void quiesce_kernel_copy(void *to, const void *from, uint64_t bytes) {
    if (to == nobodys || from == nobodys) return;
    memmove(to, from, bytes);
    shadow_write((uint64_t)to, bytes);
    touched_range((uint64_t)from, bytes, TOUCH_READ, NO_SITE);
    touched_range((uint64_t)to, bytes, TOUCH_WRITE, NO_SITE);
}
