#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/disk.h"

#define MAGIC 0x3152474445535155ull  // "UQSEDGR1", little-endian
#define LIVE_ENTRIES (1ull << 22)

enum { PARTS_MIN = 16, LIVE_STEP = 1024, CANT_RECORD = 97 };

_Static_assert(sizeof(struct live) == 64, "a cache line");
_Static_assert(sizeof(struct observation) == 64, "a cache line");

struct ledger_header *ledger;

static uint64_t length_bytes;
static char stem[1024];
static bool is_in_memory;  // nobody else sees it
static struct live *live;
static uint64_t live_reserved;  // so many of its entries can be written
static struct kept *kept;
static bool kept_reserved;
struct ledger_place ledger_place;
static struct observation *ring;
static uint64_t part_length;
static struct ledger_part *parts;  // of the ring: what saving each needs to know
static char (*names)[LEDGER_NAME_BYTES];
static uint32_t free_entry;  // a list through `address` of the entries that were used
static const char *entered;  // a literal
static uint16_t entered_index;  // 0: nobody has asked for it yet
static _Thread_local uint32_t thread;

// Literals whose index is known: a call is named by its literal's address.
enum { CACHED = 64 };
static struct {
    const char *literal;
    uint16_t index;
} cache[CACHED];

static void *map(const char *folder) {
    int access_to = PROT_READ | PROT_WRITE;
    *stem = 0;
    is_in_memory = !*folder;
    if (!*folder) return mmap(NULL, length_bytes, access_to, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char path[sizeof stem + 8];
    int process = (int)getpid();
    snprintf(stem, sizeof stem, "%s/%d", folder, process);
    snprintf(path, sizeof path, "%s.ledger", stem);
    // A process that exec replaced keeps its number, and the ledger that it left its name.
    for (int i = 1; access(path, F_OK) == 0; i++) {
        snprintf(stem, sizeof stem, "%s/%d-%d", folder, process, i);
        snprintf(path, sizeof path, "%s.ledger", stem);
    }
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return MAP_FAILED;
    void *start = MAP_FAILED;
    if (disk_allows(length_bytes) && ftruncate(file, (off_t)length_bytes) == 0)
        start = mmap(NULL, length_bytes, access_to, MAP_SHARED, file, 0);
    if (start == MAP_FAILED) unlink(path);
    close(file);
    return start;
}

// The disk is full: the file stays as it is now, and the program goes on with a copy that nobody reads.
static void stop_recording(void) {
    ledger->full |= FULL_LEDGER;
    saved_stop();
    char *from = (char *)ledger;
    char *copy = mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED) {
        fputs("quiesce: the folder of the run is full, and there is no memory to go on without it\n", stderr);
        _exit(CANT_RECORD);
    }
    uint64_t seen = ledger->ring_count < ledger->ring_entries ? ledger->ring_count : ledger->ring_entries;
    uint64_t wrong = ledger->kept_count < KEPT_ENTRIES ? ledger->kept_count : KEPT_ENTRIES;
    memcpy(copy, from, ledger->kept_offset);
    memcpy(copy + ledger->kept_offset, kept, wrong * sizeof *kept);
    memcpy(copy + ledger->live_offset, live, ledger->live_high * sizeof *live);
    memcpy(copy + ledger->ring_offset, ring, seen * sizeof *ring);
    madvise(copy, length_bytes, MADV_DONTFORK);
    mremap(copy, length_bytes, length_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from);
    is_in_memory = true;
}

// Have bytes of the ledger that are written next, or stop recording.
static void reserve(const void *start, uint64_t bytes) {
    char path[sizeof stem + 8];
    if (is_in_memory) return;
    snprintf(path, sizeof path, "%s.ledger", stem);
    if (!disk_reserve(path, ledger, (uint64_t)((const char *)start - (char *)ledger), bytes)) stop_recording();
}

void ledger_miss(enum full file) {
    if (ledger) ledger->full |= file;
}

// Begin a part of the ring; what stood there is saved before.
static void begin_part(struct observation *begin) {
    uint64_t left = (uint64_t)(ring + ledger->ring_entries - begin);
    uint64_t length = left < part_length ? left : part_length;
    if (ledger->ring_count >= ledger->ring_entries) {
        bool is_kept = saved_add(&parts[(uint64_t)(begin - ring) / part_length], ledger->saved);
        ledger->saved += length;
        if (!is_kept) ledger->lost = ledger->saved;
    } else {
        reserve(begin, length * sizeof *begin);
    }
    ledger_place = (struct ledger_place){.begin = begin, .next = begin, .end = begin + length};
}

void ledger_next_part(void) {
    const struct ledger_place *now = &ledger_place;
    parts[(uint64_t)(now->begin - ring) / part_length] = (struct ledger_part){
        now->begin, (uint64_t)(now->end - now->begin), now->pairs, now->largest};
    begin_part(now->end == ring + ledger->ring_entries ? ring : now->end);
}

void ledger_pair(void) {
    ledger_place.pairs++;
    struct observation *freed = ledger_place.next - 1;
    if (!ledger_place.largest || freed->size_bytes > ledger_place.largest->size_bytes) ledger_place.largest = freed;
}

// What every process writes, so that one that has no room for it does not start.
static bool reserve_beginning(char *start, uint64_t live_offset, uint64_t ring_offset) {
    char path[sizeof stem + 8];
    snprintf(path, sizeof path, "%s.ledger", stem);
    uint64_t names_end = 4096 + (uint64_t)NAME_ENTRIES * LEDGER_NAME_BYTES;
    if (disk_reserve(path, start, 0, names_end) &&
        disk_reserve(path, start, live_offset, LIVE_STEP * sizeof(struct live)) &&
        disk_reserve(path, start, ring_offset, sizeof(struct observation)))
        return true;
    unlink(path);
    munmap(start, length_bytes);
    errno = ENOSPC;
    return false;
}

bool ledger_open(const char *folder, uint64_t ring_entries, uint64_t saved_bytes) {
    uint64_t names_offset = 4096;
    uint64_t kept_offset = names_offset + (uint64_t)NAME_ENTRIES * LEDGER_NAME_BYTES;
    uint64_t live_offset = (kept_offset + KEPT_ENTRIES * sizeof(struct kept) + 63) / 64 * 64;  // a cache line
    uint64_t ring_offset = live_offset + LIVE_ENTRIES * sizeof(struct live);
    length_bytes = ring_offset + ring_entries * sizeof(struct observation);
    char *start = map(folder);
    if (start == MAP_FAILED) return false;
    if (*stem && !reserve_beginning(start, live_offset, ring_offset)) return false;
    madvise(start, length_bytes, MADV_DONTFORK);  // a child has no device, and must not write here
    ledger = (struct ledger_header *)start;
    live = (struct live *)(start + live_offset);
    kept = (struct kept *)(start + kept_offset);
    ring = (struct observation *)(start + ring_offset);
    part_length = ring_entries / PARTS_MIN < LEDGER_PART ? ring_entries / PARTS_MIN : LEDGER_PART;
    parts = calloc(ring_entries / part_length + 1, sizeof *parts);
    if (!parts) {
        munmap(start, length_bytes);
        return false;
    }
    names = (char(*)[LEDGER_NAME_BYTES])(start + names_offset);
    memset(cache, 0, sizeof cache);
    entered_index = 0;
    free_entry = 0;
    live_reserved = LIVE_STEP;
    kept_reserved = false;
    *ledger = (struct ledger_header){
        .layout = LEDGER_LAYOUT,
        .process = (uint32_t)getpid(),
        .parent = (uint32_t)getppid(),
        .live_offset = live_offset,
        .live_entries = LIVE_ENTRIES,
        .live_high = 1,  // index 0 means none
        .ring_offset = ring_offset,
        .ring_entries = ring_entries,
        .names_offset = names_offset,
        .names_count = 1,
        .kept_offset = kept_offset,
        .kept_entries = KEPT_ENTRIES,
    };
    saved_open(stem, saved_bytes);
    begin_part(ring);
    ledger->magic = MAGIC;
    return true;
}

void ledger_close(void) {
    munmap(ledger, length_bytes);
    free(parts);
    parts = NULL;
    ledger = NULL;
}

void ledger_discard(void) {
    char path[sizeof stem + 8];
    snprintf(path, sizeof path, "%s.ledger", stem);
    if (*stem) unlink(path);
    ledger_close();
}

const char *ledger_stem(void) { return stem; }

uint32_t ledger_thread(void) {
    if (!thread) thread = (uint32_t)syscall(SYS_gettid);
    return thread;
}

uint16_t ledger_name(const char *name) {
    uint64_t count = ledger->names_count;
    for (uint64_t i = 1; i < count; i++)
        if (!strncmp(names[i], name, LEDGER_NAME_BYTES - 1)) return (uint16_t)i;
    if (count == NAME_ENTRIES) return 0;
    strncpy(names[count], name, LEDGER_NAME_BYTES - 1);
    ledger->names_count = count + 1;
    return (uint16_t)count;
}

void ledger_enter(const char *literal) {
    entered = literal;
    entered_index = 0;
}

const char *ledger_entered(void) { return entered; }

uint16_t ledger_function(void) {
    if (entered_index || !entered) return entered_index;
    size_t place = ((uintptr_t)entered >> 3) % CACHED;
    if (cache[place].literal != entered) {
        cache[place].literal = entered;
        cache[place].index = ledger_name(entered);
    }
    entered_index = cache[place].index;
    return entered_index;
}

static void see_kept(struct observation observation) {
    uint64_t number = ledger->ring_count, place = ledger->kept_count;
    ledger_see(observation);
    if (!kept_reserved) reserve(kept, KEPT_ENTRIES * sizeof *kept);
    kept_reserved = true;
    if (place < KEPT_ENTRIES) kept[place] = (struct kept){number, ledger_place.next[-1]};
    __atomic_store_n(&ledger->kept_count, place + 1, __ATOMIC_RELEASE);
}

static uint32_t behalf_stack;
static uint16_t behalf_function;

void ledger_on_behalf(uint32_t stack, uint16_t function) {
    behalf_stack = stack;
    behalf_function = function;
}

void ledger_see_wrong(struct observation observation) {
    if (behalf_stack || behalf_function)
        see_kept((struct observation){.seen = SEEN_NODE_RAN, .stack = behalf_stack, .function = behalf_function});
    see_kept(observation);
}

static uint32_t next_entry(void) {
    if (ledger->live_high == live_reserved) {
        reserve(&live[live_reserved], LIVE_STEP * sizeof *live);
        live_reserved += LIVE_STEP;
    }
    return (uint32_t)ledger->live_high++;
}

uint64_t ledger_serials(uint64_t count) {
    uint64_t first = ledger->made + 1;
    ledger->made += count;
    return first;
}

uint32_t ledger_take(void) {
    uint32_t index = free_entry;
    if (index)
        free_entry = (uint32_t)live[index].address;
    else if (ledger->live_high < LIVE_ENTRIES)
        index = next_entry();
    return index;
}

void ledger_remove(uint32_t index) {
    __atomic_store_n(&live[index].serial, 0, __ATOMIC_RELEASE);
    live[index].address = free_entry;
    free_entry = index;
    ledger->live[live[index].thing].count--;
    ledger->live[live[index].thing].bytes -= live[index].size_bytes;
}

void ledger_resize(uint32_t index, uint64_t size_bytes) {
    ledger->live[live[index].thing].bytes += size_bytes - live[index].size_bytes;
    live[index].size_bytes = size_bytes;
}

struct live *ledger_live(uint32_t index) { return &live[index]; }

void ledger_range(void (*add)(const void *start, size_t bytes)) { add(ledger, length_bytes); }

void ledger_share(bool share) { madvise(ledger, length_bytes, share ? MADV_DOFORK : MADV_DONTFORK); }

