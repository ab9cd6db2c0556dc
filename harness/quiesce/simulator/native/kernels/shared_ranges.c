#include "kernels/shared_ranges.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/checks.h"

bool shared_range_lay_out(const struct kernel_context *context, const struct kernel_range *range,
                          struct shared_range *made) {
    int64_t size = range->access & 0xff, low = (int64_t)(range->address - context->shared_base), high = low;
    int64_t limit = context->shared_bytes < SHARED_BYTES_MAX ? context->shared_bytes : SHARED_BYTES_MAX, odd = low;
    *made = (struct shared_range){
        .offset = (uint32_t)low,
        .size = (uint32_t)size,
        .writes = (range->access >> 8 & 0xf) != LOADS,
        .site = range->site,
    };
    if (low < 0 || low >= limit) return false;
    for (unsigned axis = 0; axis < 3; axis++) {
        int64_t step = range->counts[axis] > 1 ? range->steps[axis] : 0;
        if (step >= limit || step <= -limit) return false;
        made->steps[axis] = (int32_t)step;
        made->first[axis] = range->first[axis];
        made->counts[axis] = range->counts[axis];
        odd |= step;
        *(step < 0 ? &low : &high) += step * (int64_t)(range->counts[axis] - 1);
    }
    made->low = (uint32_t)low;
    made->high = (uint32_t)(high + size);
    const struct kernel_array *array = wrong_access_array(range->site);
    if (array && (low < array->offset || high + size > (int64_t)array->offset + array->bytes)) return false;
    return low >= 0 && high + size <= limit && !(odd & (size - 1));
}

// Threads, or places between those that threads use: from one on, on each axis.
struct box {
    int64_t first[3], end[3];
};

static struct box box_of(const struct shared_range *range) {
    struct box box;
    for (unsigned axis = 0; axis < 3; axis++) {
        box.first[axis] = range->first[axis];
        box.end[axis] = box.first[axis] + range->counts[axis];
    }
    return box;
}

static struct box join(struct box box, const struct box *other) {
    for (unsigned axis = 0; axis < 3; axis++) {
        if (other->first[axis] < box.first[axis]) box.first[axis] = other->first[axis];
        if (other->end[axis] > box.end[axis]) box.end[axis] = other->end[axis];
    }
    return box;
}

static bool are_apart(const struct box *first, const struct box *second) {
    for (unsigned axis = 0; axis < 3; axis++)
        if (first->end[axis] <= second->first[axis] || second->end[axis] <= first->first[axis]) return true;
    return false;
}

// The axes, that of the smallest steps first.
static void sort_axes(const int32_t steps[3], unsigned axes[3]) {
    for (unsigned i = 0; i < 3; i++) axes[i] = i;
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = i + 1; k < 3; k++)
            if (abs(steps[axes[k]]) < abs(steps[axes[i]])) {
                unsigned axis = axes[i];
                axes[i] = axes[k];
                axes[k] = axis;
            }
}

// Whether no two threads of a box use the same byte: the steps on each axis are as long as all that lies between.
static bool all_differ(uint32_t size, const int32_t steps[3], const struct box *box) {
    unsigned axes[3];
    int64_t extent = size;
    sort_axes(steps, axes);
    for (unsigned i = 0; i < 3; i++) {
        int64_t step = abs(steps[axes[i]]), count = box->end[axes[i]] - box->first[axes[i]];
        if (count < 2) continue;
        if (step < extent) return false;
        extent += step * (count - 1);
    }
    return true;
}

static bool each_has_its_own(const struct shared_range *range) {
    if (range->counts[1] == 1 && range->counts[2] == 1)
        return range->counts[0] == 1 || abs(range->steps[0]) >= (int32_t)range->size;
    struct box box = box_of(range);
    return all_differ(range->size, range->steps, &box);
}

// What the thread whose index is 0 would use, or would have used.
static int64_t start_of(const struct shared_range *range, const int32_t steps[3]) {
    int64_t start = range->offset;
    for (unsigned axis = 0; axis < 3; axis++) start -= (int64_t)steps[axis] * range->first[axis];
    return start;
}

// Finds steps that both instructions have. On an axis where one thread is, any are right.
static bool find_steps(const struct shared_range *first, const struct shared_range *second, int32_t steps[3]) {
    for (unsigned axis = 0; axis < 3; axis++) {
        bool is_one = first->counts[axis] == 1;
        steps[axis] = (is_one ? second : first)->steps[axis];
        if (!is_one && second->counts[axis] > 1 && second->steps[axis] != steps[axis]) return false;
    }
    return first->size == second->size;
}

// Whether no thread of one instruction uses a byte that another thread of the other one uses, as far as steps tell.
static bool are_of_same_threads(const struct shared_range *first, const struct shared_range *second) {
    int32_t steps[3];
    if (!find_steps(first, second, steps)) return false;
    int64_t distance = start_of(second, steps) - start_of(first, steps);
    bool is_same = !distance;
    unsigned axes[3];
    struct box one = box_of(first), other = box_of(second);
    sort_axes(steps, axes);
    for (unsigned i = 3; i-- > 0;) {  // the threads of the first one that would use what those of the second one do
        int64_t step = steps[axes[i]], by = step ? distance / step : 0;
        other.first[axes[i]] += by;
        other.end[axes[i]] += by;
        distance -= by * step;
    }
    struct box both = join(one, &other);
    return !distance && all_differ(first->size, steps, &both) && (is_same || are_apart(&one, &other));
}

// Threads that read and write what is their own.
static bool are_same(const struct shared_range *first, const struct shared_range *second) {
    enum { LAYOUT_BYTES = offsetof(struct shared_range, low) };
    return !memcmp(first, second, LAYOUT_BYTES);
}

// Two threads that write one byte were found when the range was added.
static bool may_race(const struct shared_range *first, const struct shared_range *second) {
    if (!first->writes && !second->writes) return false;
    if (first->low >= second->high || second->low >= first->high) return false;
    return !are_same(first, second) && !are_of_same_threads(first, second);
}

static bool meets_any(const struct shared_ranges *ranges, const struct shared_range *added) {
    for (unsigned writes = added->writes ? 0 : 1; writes < 2; writes++)
        if (added->low < ranges->hulls.of[writes].high && ranges->hulls.of[writes].low < added->high) return true;
    return false;
}

void shared_ranges_begin(struct shared_ranges *ranges, uint32_t moment) {
    if (ranges->moment != moment) {
        ranges->kept = 0;
        ranges->kept_hulls = (struct shared_hulls){0};
    }
    ranges->moment = moment;
    ranges->count = ranges->kept;
    ranges->hulls = ranges->kept_hulls;
}

void shared_ranges_keep(struct shared_ranges *ranges) {
    ranges->kept = ranges->count;
    ranges->kept_hulls = ranges->hulls;
}

struct shared_range *shared_ranges_next(struct shared_ranges *ranges) {
    return ranges->count < SHARED_RANGES_MAX ? &ranges->all[ranges->count] : NULL;
}

bool shared_ranges_add(struct shared_ranges *ranges) {
    const struct shared_range *added = &ranges->all[ranges->count];
    if (added->writes && !each_has_its_own(added)) return false;
    for (unsigned i = 0; meets_any(ranges, added) && i < ranges->count; i++)
        if (may_race(&ranges->all[i], added)) return false;
    unsigned kind = added->writes;
    uint32_t *low = &ranges->hulls.of[kind].low, *high = &ranges->hulls.of[kind].high;
    if (!*high || added->low < *low) *low = added->low;
    if (added->high > *high) *high = added->high;
    ranges->count++;
    return true;
}
