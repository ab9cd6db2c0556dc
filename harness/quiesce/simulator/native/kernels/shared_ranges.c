#include "kernels/shared_ranges.h"

static uint64_t end_of(const struct shared_range *range) {
    return range->offset + (uint64_t)range->size * (range->is_same ? 1 : range->count);
}

static uint32_t thread_at(const struct shared_range *range, uint64_t offset) {
    return range->thread + (range->is_same ? 0 : (uint32_t)((offset - range->offset) / range->size));
}

// Whether the same thread uses each byte that both have, as far as two numbers tell.
static bool are_of_same_threads(const struct shared_range *first, const struct shared_range *second, uint64_t begin,
                                uint64_t end) {
    if ((first->is_same && first->count > 1) || (second->is_same && second->count > 1)) return false;
    uint32_t thread = thread_at(first, begin);
    if (thread != thread_at(second, begin)) return false;
    if (thread_at(first, end - 1) == thread && thread_at(second, end - 1) == thread) return true;
    int64_t before = (int64_t)first->offset - (int64_t)first->thread * first->size;
    return first->size == second->size && before == (int64_t)second->offset - (int64_t)second->thread * second->size;
}

static bool may_race(const struct shared_range *first, const struct shared_range *second) {
    if (!first->writes && !second->writes) return false;
    uint64_t begin = first->offset > second->offset ? first->offset : second->offset;
    uint64_t end = end_of(first) < end_of(second) ? end_of(first) : end_of(second);
    return begin < end && !are_of_same_threads(first, second, begin, end);
}

bool shared_ranges_add(struct shared_ranges *ranges, const struct shared_range *added) {
    if (ranges->count == SHARED_RANGES_MAX) return false;
    for (unsigned i = 0; i < ranges->count; i++)
        if (may_race(&ranges->all[i], added)) return false;
    ranges->all[ranges->count++] = *added;
    return true;
}
