#include "memory/registered.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/failure.h"
#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/mappings.h"
#include "machine/upcalls.h"
#include "memory/address_space.h"
#include "memory/blocks.h"

static struct registered {
    uint64_t start, size_bytes;
    uint32_t live;
    unsigned flags;
    enum { NOT_KNOWN, PLAIN, OTHER } pages;
} *registered;  // sorted
static uint32_t registered_count, registered_capacity;

static void see(enum seen seen, uint64_t address, uint64_t size_bytes) {
    ledger_see((struct observation){.seen = (uint8_t)seen,
                                    .thing = THING_REGISTERED,
                                    .stack = stack_of_call(),
                                    .address = address,
                                    .size_bytes = size_bytes});
}

// The first registered range that ends behind an address.
static uint32_t first_behind(uint64_t address) {
    uint32_t low = 0, high = registered_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (registered[middle].start + registered[middle].size_bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum status memory_register(uint64_t address, uint64_t size_bytes, unsigned flags) {
    enum status status = upcalls.order.forbid_unsafe();
    bool wraps = size_bytes > UINT64_MAX - address;
    bool is_ours = block_bank(address) || space_covers(address);
    if (!status && (!address || !size_bytes || wraps || is_ours)) status = INVALID_VALUE;
    if (!status) status = failure_meet(CALL_PINNED);
    if (status) return status;
    uint32_t place = first_behind(address);
    if (place < registered_count && registered[place].start < address + size_bytes)
        return HOST_MEMORY_ALREADY_REGISTERED;
    if (registered_count == registered_capacity) {
        uint32_t capacity = registered_capacity ? 2 * registered_capacity : 64;
        struct registered *grown = realloc(registered, capacity * sizeof *grown);
        if (!grown) return OUT_OF_MEMORY;
        registered = grown;
        registered_capacity = capacity;
    }
    uint32_t live = ledger_add((struct live){.address = address, .size_bytes = size_bytes, .thing = THING_REGISTERED,
                                          .context = (uint8_t)device_context()});
    if (!live) return OUT_OF_MEMORY;
    ledger_live(live)->stack = stack_of_call();
    memmove(&registered[place + 1], &registered[place], (registered_count - place) * sizeof *registered);
    registered[place] = (struct registered){address, size_bytes, live, flags, NOT_KNOWN};
    registered_count++;
    see(SEEN_ALLOCATED, address, size_bytes);
    return OK;
}

enum status memory_unregister(uint64_t address) {
    enum status status = upcalls.order.forbid_unsafe();
    if (status) return status;
    uint32_t place = first_behind(address);
    if (place == registered_count || registered[place].start != address) return HOST_MEMORY_NOT_REGISTERED;
    see(SEEN_FREED, address, registered[place].size_bytes);
    upcalls.order.leave_alone(address, registered[place].size_bytes);
    ledger_remove(registered[place].live);
    registered_count--;
    memmove(&registered[place], &registered[place + 1], (registered_count - place) * sizeof *registered);
    return OK;
}

struct span registered_find(uint64_t address) {
    uint32_t place = first_behind(address);
    if (place == registered_count || registered[place].start > address) return (struct span){0};
    const struct registered *found = &registered[place];
    return (struct span){THING_REGISTERED, 0, found->start, found->size_bytes, found->flags, false};
}

// Up to where pages are plain from the start on, and what is no place for them: the caller's own stack.
static struct {
    uint64_t to, stack;
} plain;

// "start-end rw-p …", in the order of addresses (proc_pid_maps(5)).
static void see_mapping(char *line) {
    char *rest;
    uint64_t start = strtoull(line, &rest, 16), end = *rest == '-' ? strtoull(rest + 1, &rest, 16) : 0;
    bool is_stack = (start <= plain.stack && plain.stack < end) || strstr(rest, "[stack]");
    if (start <= plain.to && plain.to < end && !strncmp(rest, " rw-", 4) && !is_stack) plain.to = end;
}

bool registered_is_plain(uint64_t address) {
    struct registered *found = &registered[first_behind(address)];
    if (found->pages == NOT_KNOWN) {
        plain.to = found->start;
        plain.stack = (uint64_t)__builtin_frame_address(0);
        mappings_lines(see_mapping);
        found->pages = plain.to >= found->start + found->size_bytes ? PLAIN : OTHER;
    }
    return found->pages == PLAIN;
}

void registered_table(void (*add)(const void *start, size_t bytes)) {
    add(registered, registered_capacity * sizeof *registered);
}

void registered_close(void) {
    free(registered);
    registered = NULL;
    registered_count = registered_capacity = 0;
}
