#include "kernels/heap_history.h"

#include <stddef.h>
#include <stdlib.h>

#include "memory/blocks.h"

enum { FIRST_PLACES = 1 << 10 };

// By offsets from before where all blocks begin, for an address would be a sign that somebody still knows the block.
static struct heap_block *known;
static size_t count, places;  // places: a power of two

static uint64_t offset_of(uint64_t address) { return address - BLOCKS_BASE + 1; }

static struct heap_block *place_of(struct heap_block *all, size_t room, uint64_t offset) {
    for (uint64_t at = offset * 0x9e3779b97f4a7c15 >> 32;; at++) {
        struct heap_block *each = &all[at & (room - 1)];
        if (!each->offset || each->offset == offset) return each;
    }
}

static bool make_room(void) {
    if (places && count < places / 2) return true;
    size_t wanted = places ? 2 * places : FIRST_PLACES;
    struct heap_block *grown = calloc(wanted, sizeof *grown);
    if (!grown) return false;
    for (size_t i = 0; i < places; i++)
        if (known[i].offset) *place_of(grown, wanted, known[i].offset) = known[i];
    free(known);
    known = grown;
    places = wanted;
    return true;
}

const struct heap_block *heap_history_find(uint64_t address) {
    const struct heap_block *found = places ? place_of(known, places, offset_of(address)) : NULL;
    return found && found->offset ? found : NULL;
}

struct heap_block *heap_history_make(uint64_t address) {
    if (!make_room()) return NULL;
    struct heap_block *made = place_of(known, places, offset_of(address));
    count += !made->offset;
    *made = (struct heap_block){.offset = offset_of(address)};
    return made;
}

static uint64_t distance(const struct heap_block *block, uint64_t start, uint64_t address) {
    if (address < start) return start - address;
    return address - start < block->bytes ? 0 : address - start - block->bytes;
}

// Slots begin at multiples of a granule: before a block's first byte lies the slot of another one.
const struct heap_block *heap_history_near(uint64_t address, uint64_t *start) {
    uint64_t own = block_slot(address).start, next = (address / ARENA_GRANULE + 1) * ARENA_GRANULE;
    const struct heap_block *here = own ? heap_history_find(own) : NULL, *after = heap_history_find(next);
    bool is_after = after && (!here || distance(after, next, address) < distance(here, own, address));
    *start = is_after ? next : own;
    return is_after ? after : here;
}

void heap_history_close(void) {
    free(known);
    known = NULL;
    count = places = 0;
}
