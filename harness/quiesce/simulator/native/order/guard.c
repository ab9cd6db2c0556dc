#include "order/guard.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/lock.h"
#include "machine/mappings.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "memory/blocks.h"
#include "memory/places.h"
#include "memory/registered.h"
#include "memory/shadow.h"
#include "order/fault_handler.h"
#include "order/host_thread.h"
#include "order/objects.h"
#include "order/work.h"

enum { GUARDS_MAX = 1024, ORDERS_MAX = 256 };

static struct guard {
    uint64_t start, pitch, width, height;  // what the work uses
    uint64_t first, end;                   // the pages that are protected
    uint64_t stream, observation;          // its key, and how many observations there were
    unsigned device;
    bool is_blocking, writes;
    bool is_guess;  // the work may use all of this, and may write it
} guards[GUARDS_MAX];
static unsigned guard_count;
static uint64_t registered_first = UINT64_MAX, registered_end;  // what was ever guarded of it is between

// Streams that waited for others, by their keys.
static struct order {
    uint64_t after, before;
} orders[ORDERS_MAX];
static unsigned order_count;
static bool orders_are_lost;  // there were more
static uint64_t legacy_used[DEVICES_MAX];  // how many observations there were when the default stream was used last

// The launch that is being made, if its kernel runs at once.
static struct {
    uint64_t stream, number;
    unsigned device;
    bool is_blocking, is_any;
} launching;
static bool is_suspended;

static bool is_installed, is_stopped;
static pid_t process;

// -- streams ---------------------------------------------------------------------------------------------------------

static uint64_t key_of_legacy(unsigned device) { return UINT64_MAX - device; }

static uint64_t key_of(const struct stream *stream) {
    return stream->legacy ? key_of_legacy(stream->device) : stream->serial;
}

static void add_order(uint64_t after, uint64_t before) {
    for (unsigned i = 0; i < order_count; i++)
        if (orders[i].after == after && orders[i].before == before) return;
    if (order_count == ORDERS_MAX)
        orders_are_lost = true;
    else if (after != before)
        orders[order_count++] = (struct order){after, before};
}

void guard_order(struct stream *after, const struct stream *before) {
    if (settings.hosts && before) add_order(key_of(after), key_of(before));
}

void guard_order_legacy(unsigned device) { legacy_used[device] = ledger->ring_count; }

// -- pages -----------------------------------------------------------------------------------------------------------

static void protect(const struct guard *guard) {
    if (is_suspended) return;
    mprotect((void *)guard->first, guard->end - guard->first, guard->writes ? PROT_NONE : PROT_READ);
}

// A page that work reads may be read by the host, unless other work writes it.
static void protect_again(uint64_t first, uint64_t end) {
    for (unsigned writes = 0; writes < 2; writes++)
        for (unsigned i = 0; i < guard_count; i++)
            if (guards[i].writes == writes && guards[i].first < end && first < guards[i].end) protect(&guards[i]);
}

static uint64_t let_go_count;

// A client may have unmapped some of what it registered.
static bool let_go(uint64_t first, uint64_t end) {
    __atomic_fetch_add(&let_go_count, 1, __ATOMIC_RELAXED);
    if (!mprotect((void *)first, end - first, PROT_READ | PROT_WRITE)) return true;
    bool is_any = false;
    for (uint64_t page = first; page < end; page += PAGE_BYTES)
        is_any |= !mprotect((void *)page, PAGE_BYTES, PROT_READ | PROT_WRITE);
    return is_any;
}

static bool let_page_go(uint64_t address) {
    uint64_t page = address & ~(PAGE_BYTES - 1ull);
    return let_go(page, page + PAGE_BYTES);
}

static bool has_pages(const struct guard *guard, const void *range) {
    const struct span *pages = range;
    return guard->first < pages->start + pages->size_bytes && pages->start < guard->end;
}

// Ends those guards that `ends` is true of. Other guards may have some of their pages.
static void release(bool (*ends)(const struct guard *guard, const void *what), const void *what) {
    unsigned kept = 0;
    uint64_t first = UINT64_MAX, end = 0;
    for (unsigned i = 0; i < guard_count; i++) {
        if (!ends(&guards[i], what)) {
            guards[kept++] = guards[i];
            continue;
        }
        let_go(guards[i].first, guards[i].end);
        if (guards[i].first < first) first = guards[i].first;
        if (guards[i].end > end) end = guards[i].end;
    }
    guard_count = kept;
    protect_again(first, end);
}

void guard_suspend(uint64_t start, uint64_t size_bytes) {
    uint64_t first = start & ~(PAGE_BYTES - 1ull), end = (start + size_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1ull);
    for (unsigned i = 0; i < guard_count; i++) {
        uint64_t from = guards[i].first > first ? guards[i].first : first;
        uint64_t to = guards[i].end < end ? guards[i].end : end;
        if (from < to) let_go(from, to);
    }
}

void guard_resume(uint64_t start, uint64_t size_bytes) { protect_again(start, start + size_bytes); }

void guard_suspend_all(void) {
    for (unsigned i = 0; i < guard_count; i++) let_go(guards[i].first, guards[i].end);
    is_suspended = true;
}

void guard_resume_all(void) {
    is_suspended = false;
    protect_again(0, UINT64_MAX);
}

// -- what the host waited for ----------------------------------------------------------------------------------------

struct known {
    uint64_t keys[ORDERS_MAX + 1];
    unsigned count;
    uint64_t before;
};

static bool is_known(const struct known *known, uint64_t key) {
    for (unsigned i = 0; i < known->count; i++)
        if (known->keys[i] == key) return true;
    return false;
}

static bool is_over(const struct guard *guard, const void *what) {
    const struct known *known = what;
    if (guard->stream == known->keys[0]) return guard->observation < known->before;
    if (orders_are_lost || is_known(known, guard->stream)) return true;
    // The default stream comes after what other blocking streams had before, and whoever waits for it waits for all.
    uint64_t legacy = key_of_legacy(guard->device);
    bool is_after_it = guard->observation > legacy_used[guard->device] && known->keys[0] != legacy;
    return guard->is_blocking && is_known(known, legacy) && !is_after_it;
}

void guard_release(const struct stream *stream, uint64_t before) {
    if (!guard_count) return;
    struct known known = {.keys = {key_of(stream)}, .count = 1, .before = before};
    for (unsigned i = 0; i < known.count; i++)
        for (unsigned j = 0; j < order_count; j++)
            if (orders[j].after == known.keys[i] && !is_known(&known, orders[j].before))
                known.keys[known.count++] = orders[j].before;
    release(is_over, &known);
}

static bool is_of_device(const struct guard *guard, const void *device) {
    return guard->device == *(const unsigned *)device || orders_are_lost || order_count;
}

void guard_release_device(unsigned device) {
    if (guard_count) release(is_of_device, &device);
}

void guard_leave_alone(uint64_t start, uint64_t size_bytes) {
    if (guard_count) release(has_pages, &(struct span){.start = start, .size_bytes = size_bytes});
}

static bool is_any(const struct guard *guard, const void *nothing) { return guard != nothing; }

void guard_release_all(void) { release(is_any, NULL); }

void guard_stop(void) {
    guard_release_all();
    is_stopped = true;
}

// -- the access ------------------------------------------------------------------------------------------------------

// The first byte of a range that the work uses, or 0.
static uint64_t first_used(const struct guard *guard, uint64_t start, uint64_t end) {
    uint64_t first = start > guard->start ? start : guard->start;
    uint64_t row = guard->height == 1 ? 0 : (first - guard->start) / guard->pitch;
    uint64_t row_start = guard->start + row * guard->pitch;
    if (first - row_start >= guard->width) first = row_start + guard->pitch, row++;
    return first < end && row < guard->height ? first : 0;
}

static void see(uint64_t address, bool writes, const char *access) {
    const char *call = ledger_entered();
    ledger_enter(access);
    stacks_new_call();
    ledger_see((struct observation){.seen = writes ? SEEN_HOST_WROTE : SEEN_HOST_READ,
                                    .thing = memory_find(address).thing,
                                    .stack = stack_of_call(),
                                    .object = host_thread_reaches(),
                                    .address = address,
                                    .size_bytes = 1});
    ledger_enter(call);
    stacks_new_call();
}

static void add_part(const struct guard *of, uint64_t first, uint64_t end, bool writes) {
    struct guard part = *of;
    part.first = first > of->first ? first : of->first, part.end = end < of->end ? end : of->end, part.writes = writes;
    if (part.first < part.end && guard_count < GUARDS_MAX) guards[guard_count++] = part;
}

// The work uses others of these pages. What the host only reads it may still not write.
static void cut(uint64_t first, uint64_t end, bool writes) {
    for (unsigned i = guard_count; i--;) {
        struct guard whole = guards[i];
        if (whole.end <= first || end <= whole.first || !(writes || whole.writes)) continue;
        guards[i] = guards[--guard_count];
        add_part(&whole, whole.first, first, whole.writes);
        if (!writes) add_part(&whole, first, end, false);
        add_part(&whole, end, whole.end, whole.writes);
        let_go(whole.first, whole.end);
        protect_again(whole.first, whole.end);
    }
}

static bool is_known_to_have(const struct guard *guard, const void *range) {
    return !guard->is_guess && has_pages(guard, range);
}

// A call that waits for a stream forgets what came before it, so only what is still protected is looked at. Of work
// that is told of no more needs to be known, and the host is about to use the pages.
static void meet(uint64_t start, uint64_t size_bytes, bool writes, const char *access) {
    uint64_t used = 0, reaches = host_thread_reaches();
    uint64_t first = start & ~(PAGE_BYTES - 1ull), end = (start + size_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1ull);
    for (unsigned i = 0; i < guard_count && access && !used; i++)
        if ((writes || guards[i].writes) && guards[i].observation <= reaches)
            used = first_used(&guards[i], start, start + size_bytes);
    if (used) see(used, writes, access);
    if (used) release(is_known_to_have, &(struct span){.start = first, .size_bytes = end - first});
    cut(first, end, writes);
}

static bool is_in_bank(uint64_t address) {
    const struct arena *bank = block_bank(address);
    return bank == &banks[BANK_PINNED] || bank == &banks[BANK_MANAGED];
}

static bool may_be_guarded(uint64_t start, uint64_t size_bytes) {
    return is_in_bank(start) || (start < registered_end && registered_first < start + size_bytes);
}

static bool is_guarded(uint64_t address) {
    for (unsigned i = 0; i < guard_count; i++)
        if (guards[i].first <= address && address < guards[i].end) return true;
    return false;
}

// Another thread may have let a page of registered memory go since the access faulted.
static bool may_have_been_let_go(uint64_t address) {
    static _Thread_local uint64_t last_address, last_count;
    uint64_t count = __atomic_load_n(&let_go_count, __ATOMIC_RELAXED);
    if (address == last_address && count == last_count) return false;
    last_address = address, last_count = count;
    return true;
}

// A child of the process has copies of the pages, and no machine.
static bool is_met(uint64_t address, bool writes) {
    if (!may_be_guarded(address, 1)) return false;
    if (getpid() != process) return (is_in_bank(address) || is_guarded(address)) && let_page_go(address);
    bool is_ours = lock_is_held();
    int error = errno;
    if (!is_ours) lock_take();
    bool is_here = is_in_bank(address) || is_guarded(address);
    meet(address, 1, writes, is_ours ? NULL : writes ? "a write of the host" : "a read of the host");
    bool is_let_go = is_here ? let_page_go(address) : may_have_been_let_go(address);
    protect_again(address, address + 1);
    if (!is_ours) lock_release();
    errno = error;
    return is_let_go;
}

bool guard_meet(uint64_t address, const void *state) {
    enum { IS_WRITE = 2 };  // of the processor's error code
    const ucontext_t *context = state;
    bool writes = context->uc_mcontext.gregs[REG_ERR] & IS_WRITE;
    return is_met(address, writes);
}

bool guard_is_any(void) { return __atomic_load_n(&guard_count, __ATOMIC_RELAXED) && !lock_is_held(); }

bool guard_lift(uint64_t start, uint64_t size_bytes) {
    bool is_any = false, is_child = getpid() != process;
    if (!size_bytes || !may_be_guarded(start, size_bytes)) return false;
    const struct span range = {.start = start, .size_bytes = size_bytes};
    if (!is_child) lock_take();
    for (unsigned i = 0; i < guard_count; i++)
        if (has_pages(&guards[i], &range)) is_any |= let_go(guards[i].first, guards[i].end);
    if (!is_child) lock_release();
    return is_any && !is_child;
}

void guard_used(uint64_t start, uint64_t size_bytes, bool writes, const char *access) {
    if (!size_bytes || !may_be_guarded(start, size_bytes)) return;
    lock_take();
    meet(start, size_bytes, writes, access);
    lock_release();
}

void guard_restore(void) {
    lock_take();
    protect_again(0, UINT64_MAX);
    lock_release();
}

// Whether accesses come here. A program that takes the signal for itself is left to it, and its accesses are not seen.
static bool is_watched(void) {
    if (is_stopped) return false;
    if (!is_installed) {
        process = getpid();
        return is_installed = fault_handler_install(guard_meet);
    }
    bool is_first = fault_handler_is_first();
    if (!is_first) {
        guard_stop();
        ledger_see_wrong((struct observation){.seen = SEEN_HOST_UNSEEN});
    }
    return is_first;
}

// -- work that is pending --------------------------------------------------------------------------------------------

static bool can_be_guarded(const struct guard *guard, const struct span *block) {
    bool is_block = block->thing == THING_PINNED || block->thing == THING_MANAGED;
    if (block->thing == THING_REGISTERED) is_block = registered_is_plain(guard->start);
    uint64_t end = guard->start + (guard->height - 1) * guard->pitch + guard->width;
    return is_block && !block->dead && end <= block->start + block->size_bytes;
}

// The pages that hold nothing of the block but what is used, for the system may use what lies beside it; and the last
// page of a block that has its pages for itself, as clients round sizes up.
static void add(struct guard guard) {
    uint64_t end = guard.start + (guard.height - 1) * guard.pitch + guard.width;
    struct span block = memory_find(guard.start);
    if (!can_be_guarded(&guard, &block)) return;
    guard.first = (guard.start + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1ull);
    uint64_t last_page = (block.start + block.size_bytes - 1) & ~(PAGE_BYTES - 1ull);
    bool has_last_page = block.thing != THING_REGISTERED && end > last_page;
    guard.end = (end + (has_last_page ? PAGE_BYTES - 1 : 0)) & ~(PAGE_BYTES - 1ull);
    if (guard.first >= guard.end || guard_count == GUARDS_MAX || !is_watched()) return;
    for (unsigned i = 0; i < guard_count; i++) {
        struct guard *old = &guards[i];
        bool is_same = old->start == guard.start && old->end == guard.end && old->pitch == guard.pitch &&
                       old->width == guard.width && old->stream == guard.stream && old->writes == guard.writes;
        if (!is_same) continue;
        old->observation = guard.observation;
        return;
    }
    guards[guard_count++] = guard;
    if (block.thing == THING_REGISTERED) {
        if (guard.first < registered_first) registered_first = guard.first;
        if (guard.end > registered_end) registered_end = guard.end;
    }
    protect_again(guard.first, guard.end);
}

static struct guard guessed;

static void guess(uint64_t address) {
    struct span block = memory_find(address);
    if (!is_in_bank(address) || block.dead) return;
    guessed.start = block.start, guessed.pitch = guessed.width = block.size_bytes;
    add(guessed);
}

void guard_set(const struct stream *stream, const struct work *work) {
    if (!settings.hosts || is_stopped || stream->capture) return;
    if (!stream->nonblocking && !stream->legacy) add_order(key_of(stream), key_of_legacy(stream->device));
    struct guard guard = {.stream = key_of(stream),
                          .observation = ledger->ring_count,
                          .device = stream->device,
                          .is_blocking = !stream->nonblocking};
    bool is_later = work->kind == WORK_LAUNCH && settings.schedule != SCHEDULE_EAGER && shadow_touched;
    if (is_later && work->launch.call) {
        guessed = guard;
        guessed.height = 1, guessed.writes = guessed.is_guess = true;
        upcalls.kernels.see_arguments(work->launch.call, guess);
    }
    if (work->kind == WORK_FILL && memory_is_of_host(work->fill.to)) {
        guard.start = work->fill.to, guard.pitch = work->fill.pitch;
        guard.width = work->fill.width, guard.height = work->fill.height, guard.writes = true;
        add(guard);
    }
    if (work->kind != WORK_COPY) return;
    guard.width = work->copy.width, guard.height = work->copy.height;
    if (memory_is_of_host(work->copy.to)) {
        guard.start = work->copy.to, guard.pitch = work->copy.to_pitch, guard.writes = true;
        add(guard);
    }
    if (memory_is_of_host(work->copy.from) && !work->copy.staged) {
        guard.start = work->copy.from, guard.pitch = work->copy.from_pitch, guard.writes = false;
        add(guard);
    }
}

void guard_launching(const struct stream *stream, uint64_t number) {
    launching.is_any = stream && settings.hosts && !is_stopped && !stream->capture;
    if (!launching.is_any) return;
    if (!stream->nonblocking && !stream->legacy) add_order(key_of(stream), key_of_legacy(stream->device));
    launching.stream = key_of(stream);
    launching.number = number;
    launching.device = stream->device;
    launching.is_blocking = !stream->nonblocking;
}

void guard_launched(uint64_t number, uint64_t start, uint64_t end, bool writes) {
    if (!launching.is_any || number != launching.number) return;
    add((struct guard){.start = start, .pitch = end - start, .width = end - start, .height = 1, .writes = writes,
                       .stream = launching.stream, .observation = ledger->ring_count, .device = launching.device,
                       .is_blocking = launching.is_blocking});
}

void guards_close(void) {
    guard_release_all();
    order_count = 0;
    orders_are_lost = is_suspended = false;
    memset(legacy_used, 0, sizeof legacy_used);
    launching.is_any = false;
    if (is_installed) fault_handler_remove();
    is_installed = is_stopped = false;
}
