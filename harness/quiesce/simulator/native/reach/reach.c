#include "reach/reach.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "machine/mappings.h"
#include "memory/places.h"
#include "memory/virtual.h"
#include "reach/exit_frames.h"
#include "reach/heap_blocks.h"
#include "reach/heap_malloc.h"
#include "reach/python_objects.h"
#include "reach/regions.h"
#include "reach/roots.h"
#include "reach/snapshot.h"
#include "reach/thread_stacks.h"

enum { LARGE_BYTES = 1 << 16 };  // from there on it is worth asking which pages are there

#define ADDRESS_BITS 48

static enum reach level;           // of what is found now
static bool *is_found;             // by this search, for each entry of the live table
static struct block_range *queue;  // blocks that were reached and not looked into yet
static uint64_t queue_count;

static void push(uint64_t start, uint64_t end) {
    if (level != REACH_INDIRECTLY_LOST) queue[queue_count++] = (struct block_range){start, end};
}

static bool is_readable_memory(const struct live *entry) {
    return entry->thing == THING_DEVICE || entry->thing == THING_PINNED || entry->thing == THING_MANAGED ||
           entry->thing == THING_HEAP;
}

static void find(uint32_t live) {
    struct live *entry = ledger_live(live);
    if (entry->reachable < level) entry->reachable = (uint8_t)level;
    if (is_found[live]) return;
    is_found[live] = level != REACH_INDIRECTLY_LOST;
    if (is_readable_memory(entry)) push(entry->address, entry->address + entry->size_bytes);
}

// Things have addresses and handles in one part of the address space.
static bool may_be_thing(uint64_t word) { return memory_covers(word) || handle_covers(word); }

static void look_for_thing(uint64_t word) {
    uint32_t live = memory_live_at(word);
    if (!live) live = handle_live_at(word);
    if (live) find(live);
    uint32_t space = virtual_space_at(word);
    if (space) find(space);
}

static void look_for_block(uint64_t address) {
    struct block_range block;
    if (level == REACH_INDIRECTLY_LOST) return;
    if (block_reach(address, &block)) push(block.start, block.end);
    region_reach(address);
}

// Beside an address some put marks into the bits that no address has.
static uint64_t without_marks(uint64_t word) { return word & ((1ull << ADDRESS_BITS) - 1); }

// In a packed structure an address may lie at each multiple of four.
static void look_between(uint64_t at, uint64_t end) {
    uint64_t word;
    if (at + sizeof word > end) return;
    memcpy(&word, (const void *)at, sizeof word);
    word = without_marks(word);
    if (may_be_thing(word)) look_for_thing(word);
    if (level != REACH_INDIRECTLY_LOST) region_reach(word);
}

// A plan of a Fourier transform is an integer of half a word in its client.
static void look_for_integer(uint32_t integer) {
    uint64_t handle = handle_of_integer(integer);
    uint32_t live = handle ? handle_live_at(handle) : 0;
    if (live && ledger_live(live)->thing == THING_FFT_PLAN) find(live);
}

// Python keeps its integers in digits of 30 bits, each in 32: a wrapper may hold an address as one.
static void look_at_digits(uint64_t at, uint64_t word) {
    uint64_t low = word & UINT32_MAX, high = word >> 32, number = high << 30 | low;
    if (!high || low >> 30 || high >> 30) return;
    if (level != REACH_INDIRECTLY_LOST) region_reach(number);
    if (!may_be_thing(number)) return;
    bool names_thing = memory_live_at(number) || handle_live_at(number) || virtual_space_at(number);
    if (names_thing && python_digits_are_integers(at)) look_for_thing(number);
}

__attribute__((no_sanitize("address"))) static void look_at_words(uint64_t start, uint64_t end) {
    enum { BEFORE_DIGITS_BYTES = 24 };
    for (uint64_t at = (start + 7) & ~7ull; at + sizeof(uint64_t) <= end; at += sizeof(uint64_t)) {
        uint64_t word = *(const uint64_t *)at;
        look_between(at + sizeof(uint32_t), end);
        look_for_integer((uint32_t)word);
        look_for_integer((uint32_t)(word >> 32));
        if (word < PAGE_BYTES) continue;
        if (may_be_thing(without_marks(word))) look_for_thing(without_marks(word));
        look_for_block(without_marks(word));
        if (at - start >= BEFORE_DIGITS_BYTES) look_at_digits(at, word);
    }
}

static void scan_touched(uint64_t start, uint64_t end) { snapshot_read(start, end, look_at_words); }

static void scan(uint64_t start, uint64_t end) {
    if (end - start < LARGE_BYTES)
        scan_touched(start, end);
    else
        mappings_touched(start, end, scan_touched);
}

__attribute__((no_sanitize("address"))) static void look_at_block(uint64_t start, uint64_t end) {
    struct block_range room;
    uint64_t first, last;
    bool follows = level != REACH_INDIRECTLY_LOST;
    if (follows && python_list_items(start, end, &first, &last) && block_reach(first, &room)) push(room.start, last);
    look_at_words(start, python_object_end(start, end));
}

static void scan_block(uint64_t start, uint64_t end) {
    if (end - start < LARGE_BYTES)
        snapshot_read(start, end, look_at_block);
    else
        mappings_touched(start, end, scan_touched);
}

static void follow(uint64_t start, uint64_t end) {
    scan(start, end);
    while (queue_count) {
        struct block_range next = queue[--queue_count];
        scan_block(next.start, next.end);
    }
}

// What lies in the memory of a lost thing, but for its own address.
static void look_into_lost_memory(uint32_t live) {
    struct live *entry = ledger_live(live);
    if (is_found[live]) return;
    uint8_t before = entry->reachable;
    scan(entry->address, entry->address + entry->size_bytes);
    entry->reachable = before;
}

// Host memory that a client registered is held by whoever holds the memory: as long as it is mapped, where it is no
// block of a heap.
static void find_registered(uint32_t live) {
    uint64_t address = ledger_live(live)->address;
    bool is_held = block_lies_at(address) ? block_was_reached(address) : mappings_cover(address);
    level = is_held ? REACH_HELD : REACH_LOST;
    if (level) find(live);
}

static void each_entry(bool (*is_meant)(const struct live *), void (*see)(uint32_t live)) {
    for (uint32_t live = 1; live < ledger->live_high; live++)
        if (ledger_live(live)->serial && is_meant(ledger_live(live))) see(live);
}

static bool is_part(const struct live *entry) { return entry->part; }
static bool is_registered(const struct live *entry) { return entry->thing == THING_REGISTERED; }
static void follow_part(uint32_t live) {
    find(live);
    follow(0, 0);
}

static void *take_memory(uint64_t size_bytes) {
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *start = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, how, -1, 0);
    if (start == MAP_FAILED) _exit(1);  // then nothing is said to be lost
    return start;
}

// A root of unknown memory that is too large to be read says nothing of what was not found elsewhere.
static bool is_read_in_part;
static bool may_read(uint64_t start, uint64_t end) {
    const uint64_t bytes_max = 4ull << 30;
    static uint64_t bytes;
    bytes += end - start;
    if (bytes > bytes_max) is_read_in_part = true;
    return bytes <= bytes_max;
}

static void follow_unknown(uint64_t start, uint64_t end) {
    if (may_read(start, end)) follow(start, end);
}

static void follow_next(uint64_t start, uint64_t end) {
    if (region_is_next(start)) follow_unknown(start, end);
}

// What one region holds may point into others.
static void follow_regions(void) {
    while (regions_turn()) roots_each(ROOT_MAPPED, follow_next);
}

// Memory that nobody points to is in use and lost, as a block of a heap is.
static void look_into_lost_region(uint64_t start, uint64_t end) {
    if (region_was_reached(start)) return;
    if (may_read(start, end)) scan(start, end);
}

// The copy has no pages of shared memory before it reads them.
static void follow_shared(uint64_t start, uint64_t end) {
    if (may_read(start, end)) scan_touched(start, end);
    follow(0, 0);
}

// A thread that waits in the kernel may have the address of what it made in a register, which stands nowhere else.
static bool may_be_in_register(const struct live *entry) {
    return entry->reachable == REACH_LOST && thread_has_hidden_registers(entry->thread);
}

static void give_up(uint32_t live) { ledger_live(live)->reachable = REACH_UNKNOWN; }

static void search(void) {
    heap_malloc_prepare();
    python_objects_prepare();
    roots_find();
    snapshot_prepared();
    is_found = take_memory(ledger->live_high);
    // Each block and each thing is pushed once at most.
    queue = take_memory((blocks_in_use() + ledger->live_high + 1) * sizeof *queue);
    level = REACH_HELD;
    roots_each(ROOT_HELD, follow);
    each_entry(is_part, follow_part);
    level = REACH_UNKNOWN;
    roots_each(ROOT_UNKNOWN, follow_unknown);
    roots_each(ROOT_SHARED, follow_shared);
    follow_regions();
    each_entry(is_registered, find_registered);
    if (is_read_in_part) _exit(1);  // then nothing is said to be lost
    level = REACH_INDIRECTLY_LOST;
    blocks_unreached(scan_block);
    roots_each(ROOT_MAPPED, look_into_lost_region);
    each_entry(is_readable_memory, look_into_lost_memory);
    each_entry(may_be_in_register, give_up);
}

void reach_forget(void) {
    for (uint32_t live = 1; live < ledger->live_high; live++) ledger_live(live)->reachable = REACH_LOST;
}

// Whoever has it current can ask for it (cuCtxGetCurrent).
static bool is_current_context(const struct live *entry) { return entry->thing == THING_CONTEXT && entry->stream; }
static void hold(uint32_t live) { ledger_live(live)->reachable = REACH_HELD; }

static bool is_not_held(const struct live *entry) { return entry->reachable != REACH_HELD; }
static unsigned not_held;
static void count(uint32_t live) { not_held += live != 0; }

void reach_mark(void) {
    each_entry(is_current_context, hold);
    not_held = 0;
    each_entry(is_not_held, count);
    if (!not_held) return;
    roots_prepare();
    ledger_share(true);
    bool is_searched = snapshot_search(search);
    ledger_share(false);
    roots_forget();
    if (!is_searched) each_entry(is_not_held, give_up);
}
