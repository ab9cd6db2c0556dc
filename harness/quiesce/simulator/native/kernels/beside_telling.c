#include "kernels/beside_telling.h"

#include <string.h>
#include <sys/mman.h>

#include "kernels/beside.h"
#include "kernels/shared_checks.h"
#include "kernels/touched.h"
#include "memory/shadow.h"

enum { CELL_WORDS = TOUCHED_CELL / 64, CLEARED_MAX = 1 << 19 };

unsigned beside_open(unsigned count) {
    if (count > BESIDE_MAX) count = BESIDE_MAX;
    for (unsigned i = 0; i < count; i++) {
        beside_of(i)->touched = shadow_touched_beside(i);
        if (!beside_of(i)->touched || !shared_checks_beside(i)) return i;
    }
    return count;
}

static void touch(const struct touched_here *each) {
    uint64_t address = SHADOW_BASE + each->offset;
    switch (each->what) {
        case NOTE: touched_note(address, each->touch, each->site); break;
        case USE: touched_use(address, each->bytes, (enum touch)each->touch, each->site); break;
        case ROWS: touched_rows(address, each->bytes, each->rows, (enum touch)each->touch, each->site); break;
    }
}

// Adds the bits of a cell to those of the launch.
static void add_cell(struct beside *of, const struct touched_here *note) {
    uint64_t cell = note->offset / TOUCHED_CELL;
    for (uint32_t kind = 0; kind < TOUCHES; kind++) {
        uint64_t *from = (uint64_t *)(of->touched + kind * TOUCHED_STRIDE) + cell * CELL_WORDS;
        uint64_t *to = (uint64_t *)(shadow_touched + kind * TOUCHED_STRIDE) + cell * CELL_WORDS;
        if (!(note->touch >> kind & 1)) continue;
        for (unsigned i = 0; i < CELL_WORDS; i++) to[i] |= from[i];
        memset(from, 0, CELL_WORDS * sizeof *from);
    }
    *beside_kinds(of, cell) = 0;
    of->cleared++;
}

// Calls `tell` with the items of all threads, in the order of their blocks, with which each begins.
static void in_order(unsigned count, struct list *list_of(struct beside *of), size_t size,
                     void tell(const void *item)) {
    uint64_t at[BESIDE_MAX] = {0};
    for (;;) {
        struct list *first = NULL;
        unsigned which = 0;
        uint64_t block = UINT64_MAX;
        for (unsigned i = 0; i < count; i++) {
            struct list *list = list_of(beside_of(i));
            if (at[i] == list->count) continue;
            uint64_t own = *(const uint64_t *)((const char *)list->first + at[i] * size);
            if (first && own >= block) continue;
            first = list;
            which = i;
            block = own;
        }
        if (!first) return;
        const char *item = (const char *)first->first + at[which] * size;
        for (; at[which] < first->count && *(const uint64_t *)item == block; at[which]++, item += size) tell(item);
    }
}

static struct list *touches_of(struct beside *of) { return &of->touches; }
static struct list *mistakes_of(struct beside *of) { return &of->mistakes; }

static void tell_touch(const void *item) { touch(item); }

static const struct checked_launch *told_launch;

static void tell_mistake(const void *item) {
    const struct mistake_here *each = item;
    wrong_access_see(told_launch, &each->wrong, each->count);
}

static void give_back_map(struct beside *of) {
    madvise(of->touched, TOUCHES * TOUCHED_STRIDE + SHADOW_COVERS / TOUCHED_CELL, MADV_DONTNEED);
    *beside_kinds(of, 0) = 0xff;  // nobody's, see shadow.h
    of->cleared = 0;
}

void beside_tell(unsigned count, const struct checked_launch *launch, bool by_user) {
    told_launch = launch;
    in_order(count, mistakes_of, sizeof(struct mistake_here), tell_mistake);
    in_order(count, touches_of, sizeof(struct touched_here), tell_touch);
    for (unsigned i = 0; i < count; i++) {
        struct beside *of = beside_of(i);
        const struct touched_here *touches = of->touches.first;
        for (uint64_t at = 0; at < of->touches.count; at++)
            if (touches[at].what == NOTE) add_cell(of, &touches[at]);
        if (of->is_incomplete) touched_lose();
        if (by_user || of->is_incomplete || of->cleared > CLEARED_MAX) give_back_map(of);
        if (of->mistakes.count) memset(of->mistakes.first, 0, of->mistakes.count * sizeof(struct mistake_here));
        of->touches.count = of->mistakes.count = 0;
        of->is_incomplete = false;
    }
}
