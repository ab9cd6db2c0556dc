#include "kernels/beside.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/shared_checks.h"
#include "kernels/watch.h"
#include "memory/shadow.h"

enum { CELL_WORDS = TOUCHED_CELL / 64, CLEARED_MAX = 1 << 19 };

enum what { NOTE, USE, ROWS };

// Offsets from SHADOW_BASE, for addresses would be signs that a client still knows a block.
struct touched_here {
    uint64_t block, offset, bytes;
    uint32_t site, touch;  // touch: kinds of a note
    enum what what;
    struct touched_rows rows;
};

struct mistake_here {
    uint64_t block, count;
    struct wrong_access wrong;
};

_Thread_local struct beside *beside;
static struct beside all[BESIDE_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

unsigned beside_open(unsigned count) {
    if (count > BESIDE_MAX) count = BESIDE_MAX;
    for (unsigned i = 0; i < count; i++) {
        all[i].touched = shadow_touched_beside(i);
        if (!all[i].touched || !shared_checks_beside(i)) return i;
    }
    return count;
}

struct beside *beside_of(unsigned number) { return &all[number]; }

unsigned beside_number(void) { return (unsigned)(beside - all); }

void beside_lock(void) {
    if (!beside) return;
    watch_hold();
    pthread_mutex_lock(&lock);
}

void beside_unlock(void) {
    if (!beside) return;
    pthread_mutex_unlock(&lock);
    watch_release();
}

// -- while a kernel runs ---------------------------------------------------------------------------------------------

// The thread may not be left in here.
static void *add(struct beside_list *list, size_t size) {
    if (list->count == list->capacity) {
        uint64_t capacity = 2 * list->capacity + 64;
        void *grown = realloc(list->first, capacity * size);
        if (!grown) {
            beside->is_incomplete = true;
            return NULL;
        }
        list->first = grown;
        list->capacity = capacity;
    }
    return (char *)list->first + list->count++ * size;
}

static void keep(struct touched_here touch) {
    if (touch.offset >= SHADOW_COVERS) return;
    watch_hold();
    struct touched_here *made = add(&beside->touches, sizeof *made);
    if (made) *made = touch;
    watch_release();
}

static unsigned char *kinds_of(const struct beside *of, uint64_t cell) {
    return of->touched + TOUCHES * TOUCHED_STRIDE + cell;
}

void beside_note(uint64_t address, uint32_t kinds, uint32_t site) {
    uint64_t offset = address - SHADOW_BASE;
    if (offset >= SHADOW_COVERS) return;
    unsigned char *known = kinds_of(beside, offset / TOUCHED_CELL);
    if (!(kinds & ~*known)) return;
    keep((struct touched_here){beside->block, offset, 0, site, kinds, NOTE, {0}});
    *known |= (unsigned char)kinds;
}

void beside_use(uint64_t address, uint64_t bytes, enum touch touch, uint32_t site) {
    keep((struct touched_here){beside->block, address - SHADOW_BASE, bytes, site, touch, USE, {0}});
}

void beside_rows(uint64_t address, uint64_t bytes, struct touched_rows rows, enum touch touch, uint32_t site) {
    keep((struct touched_here){beside->block, address - SHADOW_BASE, bytes, site, touch, ROWS, rows});
}

// Of each mistake the first one is told, and how many there were.
void beside_see(const struct wrong_access *wrong) {
    struct mistake_here *known = beside->mistakes.first;
    for (uint64_t i = 0; i < beside->mistakes.count; i++) {
        if (known[i].wrong.site != wrong->site || known[i].wrong.seen != wrong->seen) continue;
        known[i].count++;
        return;
    }
    watch_hold();
    struct mistake_here *made = add(&beside->mistakes, sizeof *made);
    if (made) *made = (struct mistake_here){beside->block, 1, *wrong};
    watch_release();
}

// -- afterwards ------------------------------------------------------------------------------------------------------

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
    *kinds_of(of, cell) = 0;
    of->cleared++;
}

// Calls `tell` with the items of all threads, in the order of their blocks, with which each begins.
static void in_order(unsigned count, struct beside_list *list_of(struct beside *of), size_t size,
                     void tell(const void *item)) {
    uint64_t at[BESIDE_MAX] = {0};
    for (;;) {
        struct beside_list *first = NULL;
        unsigned which = 0;
        uint64_t block = UINT64_MAX;
        for (unsigned i = 0; i < count; i++) {
            struct beside_list *list = list_of(&all[i]);
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

static struct beside_list *touches_of(struct beside *of) { return &of->touches; }
static struct beside_list *mistakes_of(struct beside *of) { return &of->mistakes; }

static void tell_touch(const void *item) { touch(item); }

static const struct checked_launch *told_launch;

static void tell_mistake(const void *item) {
    const struct mistake_here *each = item;
    wrong_access_see(told_launch, &each->wrong, each->count);
}

static void give_back_map(struct beside *of) {
    madvise(of->touched, TOUCHES * TOUCHED_STRIDE + SHADOW_COVERS / TOUCHED_CELL, MADV_DONTNEED);
    *kinds_of(of, 0) = 0xff;  // nobody's, see shadow.h
    of->cleared = 0;
}

void beside_tell(unsigned count, const struct checked_launch *launch, bool by_user) {
    told_launch = launch;
    in_order(count, mistakes_of, sizeof(struct mistake_here), tell_mistake);
    in_order(count, touches_of, sizeof(struct touched_here), tell_touch);
    for (unsigned i = 0; i < count; i++) {
        struct beside *of = &all[i];
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

void beside_close(void) {
    for (unsigned i = 0; i < BESIDE_MAX; i++) {
        free(all[i].touches.first);
        free(all[i].mistakes.first);
        all[i] = (struct beside){0};
    }
}
