#include "order/work_store.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "machine/forget.h"
#include "order/work.h"

enum { PIECES = 1024 };

static struct slab {
    struct slab *next;
    struct work pieces[PIECES];
} *slabs;
static unsigned used;  // of the newest slab
static struct work *given;  // a list through `next`

// AddressSanitizer knows only what lies on the heap.
#if defined(__SANITIZE_ADDRESS__)
#define ON_HEAP 1
#else
#define ON_HEAP 0
#endif

struct work *work_store_take(void) {
    if (ON_HEAP) return malloc(sizeof(struct work));
    if (given) {
        struct work *work = given;
        given = work->next;
        return work;
    }
    if (!slabs || used == PIECES) {
        struct slab *made =
            mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return NULL;
        made->next = slabs;
        slabs = made;
        used = 0;
    }
    return &slabs->pieces[used++];
}

void work_store_give(struct work *work) {
    if (ON_HEAP) {
        forget(work, sizeof *work);
        return;
    }
    work->kind = WORK_GATE;  // it is no function any more
    work->next = given;
    given = work;
}

void work_store_data(void (*see)(void *const *data)) {
    for (struct slab *slab = slabs; slab; slab = slab->next)
        for (unsigned i = 0; i < PIECES; i++)
            if (slab->pieces[i].kind == WORK_HOST) see(&slab->pieces[i].host.data);
}

void work_store_ranges(void (*add)(const void *start, size_t bytes)) {
    for (const struct slab *slab = slabs; slab; slab = slab->next) add(slab, sizeof *slab);
}
