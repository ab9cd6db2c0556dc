#include "kernels/beside.h"

#include <pthread.h>

#include "kernels/watch.h"
#include "memory/shadow.h"

_Thread_local struct beside *beside;
static struct beside all[BESIDE_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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
static void *add(struct list *list, size_t size) {
    void *place = list_add(list, 1, size);
    beside->is_incomplete |= !place;
    return place;
}

static void keep(struct touched_here touch) {
    if (touch.offset >= SHADOW_COVERS) return;
    watch_hold();
    struct touched_here *made = add(&beside->touches, sizeof *made);
    if (made) *made = touch;
    watch_release();
}

unsigned char *beside_kinds(const struct beside *of, uint64_t cell) {
    return of->touched + TOUCHES * TOUCHED_STRIDE + cell;
}

void beside_note(uint64_t address, uint32_t kinds, uint32_t site) {
    uint64_t offset = address - SHADOW_BASE;
    if (offset >= SHADOW_COVERS) return;
    unsigned char *known = beside_kinds(beside, offset / TOUCHED_CELL);
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

void beside_close(void) {
    for (unsigned i = 0; i < BESIDE_MAX; i++) {
        list_free(&all[i].touches);
        list_free(&all[i].mistakes);
        all[i] = (struct beside){0};
    }
}
