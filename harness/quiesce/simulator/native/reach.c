#include "reach.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "exit_frames.h"
#include "handle.h"
#include "ledger.h"
#include "memory.h"
#include "virtual.h"
#include "work_store.h"

enum { CHUNK_BYTES = 1 << 18, LINE_BYTES = 512, OWN_MAX = 2048 };

static uint64_t words[CHUNK_BYTES / sizeof(uint64_t)];

static struct range {
    uint64_t start, end;
} own[OWN_MAX];  // in the order of their addresses
static unsigned own_count;

static void look(uint64_t word) {
    uint32_t live = memory_live_at(word);
    if (!live) live = handle_live_at(word);
    if (live) ledger_live(live)->reachable = 1;
    uint32_t space = virtual_space_at(word);
    if (space) ledger_live(space)->reachable = 1;
}

// Python keeps its integers in digits of 30 bits, each in 32: a wrapper may hold an address as one.
static void look_for_digits(uint64_t word) {
    uint64_t low = word & UINT32_MAX, high = word >> 32;
    if (high && !(low >> 30) && !(high >> 30)) look(high << 30 | low);
}

// The kernel copies, so that memory that goes away meanwhile is an error and no fault.
static void scan(uint64_t start, uint64_t end) {
    for (; start < end; start += CHUNK_BYTES) {
        size_t bytes = end - start < CHUNK_BYTES ? end - start : CHUNK_BYTES;
        struct iovec to = {words, bytes}, from = {(void *)start, bytes};
        ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
        for (ssize_t i = 0; i < got / (ssize_t)sizeof *words; i++) {
            look(words[i]);
            look_for_digits(words[i]);
        }
    }
}

static void scan_mapping(const char *line, uint64_t stack) {
    uint64_t start, end;
    char access[8];
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, access) != 3) return;
    if (strncmp(access, "rw", 2) || access[3] != 'p' || memory_covers(start)) return;
    if (start <= stack && stack < end) {
        exit_frames_scan(end, scan);
        return;
    }
    for (unsigned i = 0; i < own_count && start < end; i++) {
        if (own[i].end <= start || end <= own[i].start) continue;
        if (start < own[i].start) scan(start, own[i].start);
        start = own[i].end;
    }
    if (start < end) scan(start, end);
}

static void add_own(const void *start, size_t bytes) {
    if (own_count < OWN_MAX && bytes) own[own_count++] = (struct range){(uint64_t)start, (uint64_t)start + bytes};
}

static int compare_ranges(const void *first, const void *second) {
    uint64_t left = ((const struct range *)first)->start, right = ((const struct range *)second)->start;
    return left < right ? -1 : left > right;
}

// What is ours and not the client's: the chunk that is being looked at, and addresses that were or will be handed out.
static void find_own(void) {
    own_count = 0;
    add_own(words, sizeof words);
    memory_tables(add_own);
    work_store_ranges(add_own);
    qsort(own, own_count, sizeof *own, compare_ranges);
}

void reach_forget(void) {
    for (uint32_t live = 1; live < ledger->live_high; live++) ledger_live(live)->reachable = 0;
}

void reach_mark(void) {
    find_own();
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) return;
    char line[LINE_BYTES];
    uint64_t stack = (uint64_t)__builtin_frame_address(0);
    while (fgets(line, sizeof line, maps)) scan_mapping(line, stack);
    fclose(maps);
    // Page-locked memory is the host's, and may hold them too.
    for (uint32_t live = 1; live < ledger->live_high; live++) {
        const struct live *entry = ledger_live(live);
        if (entry->serial && entry->thing == THING_PINNED) scan(entry->address, entry->address + entry->size_bytes);
    }
}
