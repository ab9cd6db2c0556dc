#include "memory/blocks.h"

#include <stdlib.h>

struct arena banks[BANKS];
struct block *blocks;
static uint32_t capacity;
static bool is_reserved;

bool blocks_make_room(uint32_t live) {
    if (live < capacity) return true;
    uint32_t wanted = capacity ? 2 * capacity : 4096;
    while (wanted <= live) wanted *= 2;
    struct block *grown = realloc(blocks, wanted * sizeof *grown);
    if (!grown) return false;
    blocks = grown;
    capacity = wanted;
    return true;
}

void blocks_tables(void (*add)(const void *start, size_t bytes)) {
    add(banks, sizeof banks);
    for (unsigned bank = 0; bank < BANKS; bank++)
        for (unsigned i = 0; i < ARENA_CLASSES; i++)
            add(banks[bank].classes[i].free, banks[bank].classes[i].free_capacity * sizeof(struct arena_slot));
}

bool blocks_open(void) {
    if (!base_reserve()) return false;
    is_reserved = true;
    for (unsigned bank = 0; bank < BANKS; bank++) {
        if (bank >= settings.devices && bank < DEVICES_MAX) continue;
        if (!arena_open(&banks[bank], BLOCKS_BASE + bank * ARENA_BYTES, settings.recycle == RECYCLE_LATE)) return false;
    }
    return true;
}

void blocks_close(void) {
    for (unsigned bank = 0; bank < BANKS; bank++) arena_close(&banks[bank]);
    if (is_reserved) base_give_up();
    is_reserved = false;
    free(blocks);
    blocks = NULL;
    capacity = 0;
}
