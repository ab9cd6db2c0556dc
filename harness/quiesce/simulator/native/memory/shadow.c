#include "memory/shadow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "machine/hidden.h"
#include "machine/settings.h"

enum { PAGE_BYTES = 4096 };

bool shadows_are_kept;
static unsigned char *shadows[DEVICES_MAX];
unsigned char *shadow_touched;
static unsigned char *touched_beside[SHADOW_BESIDE_MAX];
static unsigned char *nothing;

_Static_assert(SHADOW_COVERS / 8 < TOUCHED_STRIDE, "a table has a bit for each byte");
_Static_assert(MEMORY_BASE_USUAL % TOUCHED_CELL == 0 && MEMORY_BASE_STEP % TOUCHED_CELL == 0,
               "a cell begins with a byte of a table");

static struct leaving {
    struct leaving *next;
    uint64_t hidden_start, size_bytes;  // see hidden.h
} *leaving, **last = &leaving;

static size_t whole_bytes(void) { return (SHADOW_COVERS / 8 / PAGE_BYTES + 1) * PAGE_BYTES; }

static size_t touched_bytes(void) {
    return TOUCHED_TABLES * TOUCHED_STRIDE + (SHADOW_COVERS / TOUCHED_CELL / PAGE_BYTES + 1) * PAGE_BYTES;
}

static unsigned char *map(size_t bytes) {
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    madvise(memory, bytes, MADV_DONTDUMP);
    return memory;
}

bool shadows_open(void) {
    for (unsigned i = 0; settings.checks && i < settings.devices; i++)
        if (!(shadows[i] = map(whole_bytes()))) return false;
    if (settings.checks && !(shadow_touched = map(touched_bytes()))) return false;
    if (shadow_touched) shadow_touched[TOUCHED_TABLES * TOUCHED_STRIDE] = 0xff;  // accesses beyond ask for themselves
    shadows_are_kept = settings.checks;
    return true;
}

void shadows_close(void) {
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        if (shadows[i]) munmap(shadows[i], whole_bytes());
        shadows[i] = NULL;
    }
    if (shadow_touched) munmap(shadow_touched, touched_bytes());
    shadow_touched = NULL;
    for (unsigned i = 0; i < SHADOW_BESIDE_MAX; i++) {
        if (touched_beside[i]) munmap(touched_beside[i], touched_bytes());
        touched_beside[i] = NULL;
    }
    if (nothing) munmap(nothing, whole_bytes());
    nothing = NULL;
    while (leaving) {
        struct leaving *next = leaving->next;
        free(leaving);
        leaving = next;
    }
    last = &leaving;
    shadows_are_kept = false;
}

void *shadow_of(unsigned device) { return shadows[device]; }

void *shadow_of_nothing(void) {
    if (!nothing && settings.checks) nothing = map(whole_bytes());
    return nothing;
}

unsigned char *shadow_touched_beside(unsigned number) {
    unsigned char **place = &touched_beside[number];
    if (!*place && shadow_touched && (*place = map(touched_bytes()))) (*place)[TOUCHED_TABLES * TOUCHED_STRIDE] = 0xff;
    return *place;
}

static unsigned char *table(unsigned number) {
    if (number < DEVICES_MAX) return shadows[number];
    if (number == DEVICES_MAX) return nothing;
    return number == DEVICES_MAX + 1 ? shadow_touched : touched_beside[number - DEVICES_MAX - 2];
}

bool shadow_within(uint64_t start, uint64_t end, uint64_t *first, uint64_t *behind) {
    *first = *behind = end;
    for (unsigned i = 0; i < DEVICES_MAX + 2 + SHADOW_BESIDE_MAX; i++) {
        bool is_touched = i > DEVICES_MAX;
        uint64_t from = (uint64_t)table(i);
        if (!from || from < start || from >= *first) continue;
        *first = from;
        *behind = from + (is_touched ? touched_bytes() : whole_bytes());
    }
    return *first < end;
}

static void set_part(unsigned char *byte, unsigned from, unsigned to, bool value) {
    unsigned char mask = (unsigned char)((0xffu << from) & (0xffu >> (8 - to)));
    *byte = value ? *byte | mask : *byte & (unsigned char)~mask;
}

// Whole pages without any bit cost no memory.
static void clear_bytes(unsigned char *first, size_t bytes) {
    enum { LARGE_BYTES = 1 << 18 };
    uintptr_t start = ((uintptr_t)first + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)first + bytes) & ~(uintptr_t)(PAGE_BYTES - 1);
    if (bytes < LARGE_BYTES || madvise((void *)start, end - start, MADV_DONTNEED)) {
        memset(first, 0, bytes);
        return;
    }
    memset(first, 0, start - (uintptr_t)first);
    memset((void *)end, 0, (uintptr_t)first + bytes - end);
}

static void set(unsigned device, uint64_t address, uint64_t size_bytes, bool value) {
    unsigned char *shadow = shadows[device];
    uint64_t first = address - SHADOW_BASE, end = first + size_bytes;
    if (!shadow || !size_bytes || first >= SHADOW_COVERS || end > SHADOW_COVERS) return;
    if (first / 8 == (end - 1) / 8) {
        set_part(shadow + first / 8, first % 8, (unsigned)((end - 1) % 8 + 1), value);
        return;
    }
    if (first % 8) set_part(shadow + first / 8, first % 8, 8, value);
    if (end % 8) set_part(shadow + end / 8, 0, end % 8, value);
    uint64_t from = (first + 7) / 8, to = end / 8;
    if (value)
        memset(shadow + from, 0xff, to - from);
    else
        clear_bytes(shadow + from, to - from);
}

void shadow_write_for(unsigned device, uint64_t address, uint64_t size_bytes) {
    set(device, address, size_bytes, true);
}
void shadow_forget_for(unsigned device, uint64_t address, uint64_t size_bytes) {
    set(device, address, size_bytes, false);
}

// Memory of a device has bits of that device alone; managed and pinned memory is everybody's. Of mapped memory
// virtual.c says itself which devices may use it: what is written there changes nothing.
static void set_for_all(uint64_t address, uint64_t size_bytes, bool value) {
    const struct arena *bank = shadows_are_kept ? block_bank(address) : NULL;
    if (!bank) return;
    unsigned number = (unsigned)(bank - banks);
    if (number < DEVICES_MAX)
        set(number, address, size_bytes, value);
    else
        for (unsigned i = 0; i < settings.devices; i++) set(i, address, size_bytes, value);
}

void shadow_write(uint64_t address, uint64_t size_bytes) { set_for_all(address, size_bytes, true); }

void shadow_forget(uint64_t address, uint64_t size_bytes) {
    set_for_all(address, size_bytes, false);
    for (struct leaving **each = &leaving; *each; each = &(*each)->next) {
        struct leaving *found = *each;
        if (HIDDEN(found->hidden_start) != address) continue;
        *each = found->next;
        if (last == &found->next) last = each;
        free(found);
        return;
    }
}

unsigned shadow_count(unsigned device, uint64_t address, unsigned size_bytes) {
    const unsigned char *shadow = shadows[device];
    uint64_t first = address - SHADOW_BASE;
    unsigned count = 0;
    if (!shadow || first >= SHADOW_COVERS) return 0;
    for (uint64_t i = first; i < first + size_bytes; i++) count += shadow[i / 8] >> i % 8 & 1;
    return count;
}

bool shadow_is_whole(const void *bits, uint64_t address, uint64_t size_bytes) {
    const unsigned char *shadow = bits;
    uint64_t first = address - SHADOW_BASE, end = first + size_bytes;
    if (!shadow || !size_bytes || first >= SHADOW_COVERS || end > SHADOW_COVERS) return false;
    uint64_t from = first / 8, last = (end - 1) / 8;
    unsigned char at_first = (unsigned char)(0xffu << first % 8);
    unsigned char at_last = (unsigned char)(0xffu >> (7 - (end - 1) % 8));
    if (from == last) return !(~shadow[from] & at_first & at_last);
    if (~shadow[from] & at_first || ~shadow[last] & at_last) return false;
    uint64_t all = ~0ull;
    for (from++; from + sizeof all <= last; from += sizeof all) {
        uint64_t some;
        memcpy(&some, shadow + from, sizeof some);
        all &= some;
    }
    for (; from < last; from++) all &= shadow[from] | ~0xffull;
    return !~all;
}

uint64_t shadow_whole_until(const void *bits, uint64_t address, uint64_t size_bytes) {
    const unsigned char *shadow = bits;
    uint64_t first = address - SHADOW_BASE, from = (first + 7) / 8;
    if (!shadow || first >= SHADOW_COVERS || size_bytes < 8 || size_bytes > SHADOW_COVERS - first) return address;
    if (first % 8 && (unsigned char)~shadow[first / 8] >> first % 8) return address;
    uint64_t to = (first + size_bytes) / 8;
    for (uint64_t some[8]; from + sizeof some <= to; from += sizeof some) {
        memcpy(some, shadow + from, sizeof some);
        for (unsigned i = 1; i < 8; i++) some[0] &= some[i];
        if (~some[0]) break;
    }
    while (from < to && shadow[from] == 0xff) from++;
    return SHADOW_BASE + 8 * from;
}

void shadow_leave(uint64_t address, uint64_t size_bytes) {
    struct leaving *made = shadows_are_kept ? malloc(sizeof *made) : NULL;
    if (!made) return;
    *made = (struct leaving){NULL, HIDDEN(address), size_bytes};
    *last = made;
    last = &made->next;
}

bool shadow_is_leaving(uint64_t address, uint64_t *start, uint64_t *size_bytes) {
    for (const struct leaving *each = leaving; each; each = each->next) {
        uint64_t begin = HIDDEN(each->hidden_start);
        if (address - begin >= each->size_bytes) continue;
        *start = begin;
        *size_bytes = each->size_bytes;
        return true;
    }
    return false;
}
