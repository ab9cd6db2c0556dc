#include "kernels/stillness.h"

#include <string.h>

#include "kernels/arithmetic.h"
#include "kernels/touched.h"
#include "memory/places.h"

enum { WRITES_MAX = 1024, BYTES_MAX = 64 };

static struct written {
    uint64_t address;
    uint32_t bytes;
    char before[BYTES_MAX];
} writes[WRITES_MAX];
static unsigned count;
static bool is_unsure;
static struct looked first, outside;
static uint64_t clock_before;
static follow_access *before;

// Only what it was before the first write counts.
static bool is_known(uint64_t address) {
    for (unsigned i = 0; i < count; i++)
        if (address - writes[i].address < writes[i].bytes) return true;
    return false;
}

static void note_write(const struct access *access) {
    if (is_known(access->address)) return;
    if (count == WRITES_MAX || access->bytes > BYTES_MAX) {
        is_unsure = true;
        return;
    }
    struct written *made = &writes[count++];
    *made = (struct written){.address = access->address, .bytes = (uint32_t)access->bytes};
    memcpy(made->before, (const void *)access->address, access->bytes);
}

// Whether a thread of this launch has changed what is looked at: a lock that is taken is no longer 0.
static bool is_of_launch(const struct access *access) {
    static const char free[BYTES_MAX];
    if (!memory_covers(access->address) || memory_is_of_heap(access->address)) return true;
    if (touched_is(access->address, access->bytes, TOUCH_WRITE)) return true;
    if (touched_is(access->address, access->bytes, TOUCH_STRONG_WRITE)) return true;
    bool is_taken = access->bytes <= BYTES_MAX && memcmp((const void *)access->address, free, access->bytes);
    return is_taken && touched_is(access->address, access->bytes, TOUCH_ATOMIC);
}

static void note_look(struct looked *looked, const struct access *access, uint32_t site) {
    if (looked->is_there) return;
    *looked = (struct looked){.is_there = true,
                            .address = access->address,
                            .bytes = (uint32_t)access->bytes,
                            .thread = access->thread,
                            .site = site};
    memcpy(looked->block, access->context->block_index, sizeof looked->block);
}

// Threads of the host may write to pinned, managed and registered memory while a kernel runs, and other processes to
// memory that they opened. Shared memory lies in the rooms of blocks, which grid.c compares.
static void see(const struct access *access, uint32_t touches, uint32_t site) {
    if (before) before(access, touches, site);
    if (access->kind != LOADS && access->space == OF_MEMORY) note_write(access);
    if (access->kind == STORES || access->kind == BEGINS_COPY) return;
    bool is_of_others = memory_is_of_host(access->address) || memory_is_shared(access->address);
    if (access->space == OF_MEMORY && is_of_others) is_unsure = true;
    if (access->space != OF_LOCAL) note_look(&first, access, site);
    if (access->space == OF_MEMORY && !is_of_launch(access)) note_look(&outside, access, site);
}

bool stillness_begin(void) {
    before = checks_follower();
    if (!checks_bits() || !checks_follow(see)) return false;
    count = 0;
    is_unsure = false;
    first.is_there = outside.is_there = false;
    clock_before = kernel_clock();
    return true;
}

bool stillness_is_begun(void) { return checks_follower() == see; }

bool stillness_end(struct looked *looked, struct looked *awaited) {
    if (!stillness_is_begun()) return false;  // who was told before has no more room, and nobody is told any more
    checks_follow(before);
    *looked = first;
    *awaited = outside;
    if (is_unsure || clock_before != kernel_clock()) return false;
    for (unsigned i = 0; i < count; i++)
        if (memcmp((const void *)writes[i].address, writes[i].before, writes[i].bytes)) return false;
    return true;
}
