#include "ledger/handle.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/settings.h"

#define HANDLE_BASE 0x3ed35b680000ull
#define HANDLE_STEP 64ull  // so that low bits are free, as a client may assume of a pointer

static struct slot {
    void *object;
    uint32_t live;
    uint32_t next_free;  // index + 1
    uint64_t serial;
    enum thing thing;  // also of a handle that was destroyed
} *slots;
static uint32_t count, capacity;
static uint32_t first_free[THINGS];  // a handle comes again as the same kind of thing, so that a stale one is known

static bool grow(void) {
    uint32_t wanted = capacity ? 2 * capacity : 256;
    struct slot *grown = realloc(slots, wanted * sizeof *grown);
    if (!grown) return false;
    slots = grown;
    capacity = wanted;
    return true;
}

static bool enter(uint32_t index, unsigned device, bool nonblocking) {
    struct slot *slot = &slots[index];
    uint64_t handle = HANDLE_BASE + index * HANDLE_STEP;
    struct live entry = {.address = handle, .thing = (uint8_t)slot->thing, .device = (uint16_t)device,
                         .context = (uint8_t)device_context()};
    slot->live = ledger_add(entry);
    if (!slot->live) return false;
    slot->serial = ledger_live(slot->live)->serial;
    ledger_live(slot->live)->stack = stack_of_call();
    ledger_see((struct observation){.seen = SEEN_CREATED,
                                    .thing = (uint8_t)slot->thing,
                                    .device = (uint16_t)device,
                                    .stack = stack_of_call(),
                                    .object = slot->serial,
                                    .flags = nonblocking ? FLAG_NONBLOCKING : 0});
    return true;
}

uint64_t handle_make(enum thing thing, void *object, unsigned device, uint64_t *serial, bool nonblocking) {
    uint32_t index;
    if (first_free[thing]) {
        index = first_free[thing] - 1;
        first_free[thing] = slots[index].next_free;
    } else {
        if (count == capacity && !grow()) return 0;
        index = count++;
    }
    slots[index] = (struct slot){object, 0, 0, 0, thing};
    if (!enter(index, device, nonblocking)) return 0;
    *serial = slots[index].serial;
    return HANDLE_BASE + index * HANDLE_STEP;
}

static struct slot *slot_of(uint64_t handle) {
    uint64_t index = (handle - HANDLE_BASE) / HANDLE_STEP;
    return handle < HANDLE_BASE || handle % HANDLE_STEP || index >= count ? NULL : &slots[index];
}

void *handle_find(enum thing thing, uint64_t handle) {
    struct slot *slot = slot_of(handle);
    if (!slot || slot->thing != thing) return NULL;
    if (!slot->object)
        ledger_see_wrong((struct observation){.seen = SEEN_DEAD_HANDLE,
                                        .thing = (uint8_t)thing,
                                        .stack = stack_of_call(),
                                        .address = handle,
                                        .object = slot->serial});
    return slot->object;
}

void handle_disown(uint64_t handle) {
    struct slot *slot = slot_of(handle);
    ledger_remove(slot->live);
    slot->live = 0;
}

bool handle_own(uint64_t handle, unsigned device) {
    return enter((uint32_t)(slot_of(handle) - slots), device, false);
}

void handle_drop(uint64_t handle) {
    struct slot *slot = slot_of(handle);
    ledger_see((struct observation){.seen = SEEN_DESTROYED, .thing = (uint8_t)slot->thing, .object = slot->serial});
    if (slot->live) ledger_remove(slot->live);
    slot->object = NULL;
    if (settings.recycle == RECYCLE_NEVER) return;
    slot->next_free = first_free[slot->thing];
    first_free[slot->thing] = (uint32_t)(slot - slots) + 1;
}

bool handle_covers(uint64_t number) { return number - HANDLE_BASE < count * HANDLE_STEP; }

uint32_t handle_live_at(uint64_t handle) {
    const struct slot *slot = slot_of(handle);
    return slot && slot->object ? slot->live : 0;
}

uint32_t handle_number(uint64_t handle) { return (uint32_t)((handle - HANDLE_BASE) / HANDLE_STEP) + 1; }
uint64_t handle_numbered(uint32_t number) { return HANDLE_BASE + (number - 1) * HANDLE_STEP; }

uint64_t handle_next(uint64_t after, enum thing *thing) {
    uint32_t index = after ? (uint32_t)((after - HANDLE_BASE) / HANDLE_STEP) + 1 : 0;
    while (index < count && !slots[index].object) index++;
    if (index == count) return 0;
    *thing = slots[index].thing;
    return HANDLE_BASE + index * HANDLE_STEP;
}

uint32_t handle_integer(uint64_t handle) { return HANDLE_INTEGERS + handle_number(handle); }
uint64_t handle_of_integer(uint32_t integer) {
    uint32_t index = integer - HANDLE_INTEGERS - 1;
    return index < count ? handle_numbered(index + 1) : 0;
}

void handles_close(void) {
    free(slots);
    slots = NULL;
    count = capacity = 0;
    memset(first_free, 0, sizeof first_free);
}
