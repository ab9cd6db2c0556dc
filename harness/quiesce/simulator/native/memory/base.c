#include "memory/base.h"

#include <sys/mman.h>

#define PLACES_FIRST 0x01ull  // of all, as multiples of the step, with the usual place's lower digits
#define PLACES_ABOVE_V8 0x42ull
#define PLACES_END 0x72ull
#define PLACES_OF_HANDLES_FIRST 0x3ed000000000ull  // ledger/handle.c and code/module.c
#define PLACES_OF_HANDLES_END 0x3f0000000000ull

uint64_t memory_base = MEMORY_BASE_USUAL;

static bool reserve(uint64_t base) {
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void *wanted = (void *)base, *got = mmap(wanted, MEMORY_BYTES, PROT_NONE, how, -1, 0);
    if (got == MAP_FAILED) return false;
    if (got == wanted) {
        memory_base = base;
        return true;
    }
    munmap(got, MEMORY_BYTES);  // a kernel before 4.17 takes the flag for a hint
    return false;
}

static bool reserve_place(uint64_t place) {
    uint64_t base = place * MEMORY_BASE_STEP + MEMORY_BASE_USUAL % MEMORY_BASE_STEP;
    bool holds_handles = base < PLACES_OF_HANDLES_END && base + MEMORY_BYTES > PLACES_OF_HANDLES_FIRST;
    return !holds_handles && reserve(base);
}

bool base_reserve(void) {
    if (reserve(MEMORY_BASE_USUAL)) return true;
    for (uint64_t place = PLACES_ABOVE_V8; place < PLACES_END; place++)
        if (reserve_place(place)) return true;
    for (uint64_t place = PLACES_ABOVE_V8 - 1; place >= PLACES_FIRST; place--)
        if (reserve_place(place)) return true;
    return false;
}

void base_give_up(void) { munmap((void *)memory_base, MEMORY_BYTES); }
