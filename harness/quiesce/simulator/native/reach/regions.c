#include "reach/regions.h"

#include <stddef.h>

enum { REGIONS_MAX = 1 << 16 };

static struct region {
    uint64_t start, end;
    enum { UNREACHED, REACHED, NEXT, DONE } state;
} regions[REGIONS_MAX];
static unsigned regions_count, reached_count;
static bool are_too_many;

static struct region *last(void) { return regions_count ? &regions[regions_count - 1] : NULL; }

void region_add(uint64_t start, uint64_t end) {
    if (start >= end) return;
    if (last() && last()->end == start)
        last()->end = end;
    else if (regions_count == REGIONS_MAX)
        are_too_many = true;
    else
        regions[regions_count++] = (struct region){start, end, UNREACHED};
}

void region_cut(uint64_t start, uint64_t end) {
    struct region *cut = last();
    if (!cut || start < cut->start || start >= cut->end) return;
    uint64_t behind = cut->end;
    cut->end = start;
    if (cut->start == start) regions_count--;
    region_add(end, behind);
}

static struct region *find(uint64_t address) {
    unsigned low = 0, high = regions_count;
    if (!high || address < regions[0].start || address >= regions[high - 1].end) return NULL;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (regions[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return regions[low].start <= address ? &regions[low] : NULL;
}

void region_reach(uint64_t address) {
    struct region *region = find(address);
    if (!region || region->state != UNREACHED) return;
    region->state = REACHED;
    reached_count++;
}

bool regions_turn(void) {
    bool are_any = reached_count;
    for (unsigned i = 0; i < regions_count; i++) {
        if (regions[i].state == NEXT) regions[i].state = DONE;
        if (regions[i].state == REACHED) regions[i].state = NEXT;
    }
    reached_count = 0;
    return are_any;
}

bool region_is_next(uint64_t address) {
    const struct region *region = find(address);
    return region && region->state == NEXT;
}

bool region_was_reached(uint64_t address) {
    const struct region *region = find(address);
    return region ? region->state != UNREACHED : are_too_many;
}
