#include "memory/address_space.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/settings.h"

static struct reservation *reservations;
static uint64_t highest;  // no address above was ever handed out; 0: none was at all

struct reservation *space_first(void) { return reservations; }

struct reservation *space_at(uint64_t address) {
    struct reservation *each = reservations;
    while (each && address - space_start(each) >= each->size_bytes) each = each->next;
    return each;
}

struct granule *space_granule(uint64_t address) {
    struct reservation *place = space_at(address);
    return place ? &place->granules[granules_of(address - space_start(place))] : NULL;
}

struct granule *space_range(uint64_t address, uint64_t size_bytes) {
    struct reservation *place = space_at(address);
    bool whole = size_bytes && address % VIRTUAL_GRANULE == 0 && size_bytes % VIRTUAL_GRANULE == 0;
    if (!place || !whole || size_bytes > place->size_bytes - (address - space_start(place))) return NULL;
    return &place->granules[granules_of(address - space_start(place))];
}

void space_hide(uint64_t address, uint64_t size_bytes) {
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    mmap((void *)address, size_bytes, PROT_NONE, how, -1, 0);
}

bool space_covers(uint64_t address) { return highest && address - SPACE_BASE < SPACE_BYTES; }

bool space_was_used(uint64_t address) { return address < highest; }

// Finds room; *place is where it belongs in the list. Returns 0 where there is none.
static uint64_t find_room(uint64_t size_bytes, uint64_t alignment, struct reservation ***place) {
    uint64_t start = SPACE_BASE;
    *place = &reservations;
    bool is_room_above = size_bytes + alignment <= SPACE_BASE + SPACE_BYTES - highest;
    if (settings.recycle == RECYCLE_NEVER || (settings.recycle == RECYCLE_LATE && is_room_above)) {
        start = highest;
        while (**place) *place = &(**place)->next;
    }
    for (;; start = space_start(**place) + (**place)->size_bytes, *place = &(**place)->next) {
        start = (start + alignment - 1) / alignment * alignment;
        uint64_t end = **place ? space_start(**place) : SPACE_BASE + SPACE_BYTES;
        if (start <= end && size_bytes <= end - start) return start;
        if (!**place) return 0;
    }
}

enum status space_reserve(uint64_t size_bytes, uint64_t alignment, uint64_t *address) {
    enum { PAGE_BYTES = 4096 };
    bool fits = size_bytes && size_bytes % PAGE_BYTES == 0 && !(alignment & (alignment - 1)) &&
                alignment <= SPACE_BYTES;
    if (!fits) return INVALID_VALUE;
    if (alignment < VIRTUAL_GRANULE) alignment = VIRTUAL_GRANULE;
    if (size_bytes > SPACE_BYTES) return OUT_OF_MEMORY;
    if (!highest) highest = SPACE_BASE;
    uint64_t whole = (size_bytes + VIRTUAL_GRANULE - 1) / VIRTUAL_GRANULE * VIRTUAL_GRANULE;
    struct reservation *made = calloc(1, sizeof *made), **place;
    uint64_t start = find_room(whole, alignment, &place);
    if (made) made->granules = start ? calloc(granules_of(whole), sizeof *made->granules) : NULL;
    if (made && made->granules)
        made->live = ledger_add((struct live){
            .address = start, .thing = THING_RESERVATION, .device = (uint16_t)device_current(),
            .context = (uint8_t)device_context()});
    if (!made || !made->live) {
        if (made) free(made->granules);
        free(made);
        return OUT_OF_MEMORY;
    }
    made->hidden_start = HIDDEN(start);
    made->size_bytes = size_bytes;
    made->device = device_current();
    made->next = *place;
    *place = made;
    ledger_live(made->live)->address = start;
    ledger_live(made->live)->stack = stack_of_call();
    if (start + whole > highest) highest = start + whole;
    *address = start;
    return OK;
}

void space_give_back(struct reservation *place) {
    struct reservation **each = &reservations;
    while (*each != place) each = &(*each)->next;
    *each = place->next;
    ledger_remove(place->live);
    free(place->granules);
    free(place);
}

void space_close(void) {
    while (reservations) space_give_back(reservations);
    highest = 0;
}
