#include "kernels/ranges.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/beside.h"
#include "kernels/checks.h"
#include "kernels/memory_races.h"
#include "kernels/shared_checks.h"
#include "kernels/stillness.h"
#include "kernels/touched.h"
#include "memory/shadow.h"

enum { RANGES_MAX = 128, OTHERS_READ = 1 << 16 };
enum { KNOWN_MAX = 64, AHEAD_BYTES_MAX = 1 << 20 };
#define STEP_MAX (1ll << 44)  // of which so many as a block has threads do not leave the address space

// Bytes of which every use of some instruction's kind is right, as of the launch that runs. Of these none goes away
// before the launch ends, so that the blocks that follow need not look at them again.
static struct known {
    uint64_t start, end;
    uint32_t site;
} known[1 + BESIDE_MAX][KNOWN_MAX];  // to one thread alone, or to each of several

// The accesses of threads that are next to each other: `step` bytes from one to the next.
struct row {
    uint64_t address;
    int64_t step;
    uint32_t count;
};

static uint64_t bytes_of(const struct kernel_range *range) { return range->access & 0xff; }
static enum access_kind kind_of(const struct kernel_range *range) {
    return (enum access_kind)(range->access >> 8 & 0xf);
}
static bool is_shared(const struct kernel_range *range) { return range->access >> 12 == OF_SHARED; }

// Threads that all use the same bytes are as one.
static struct row row_of(const struct kernel_range *range, uint32_t y, uint32_t z) {
    struct row row = {range->address + (uint64_t)(range->steps[1] * y + range->steps[2] * z), range->steps[0],
                      range->counts[0]};
    if (!row.step) row.count = 1;
    return row;
}

static struct known *known_here(void) { return known[beside ? 1 + beside_number() : 0]; }

void ranges_begin(void) { memset(known_here(), 0, sizeof *known); }

// -- whether accesses are right --------------------------------------------------------------------------------------

// The bytes from the first one that the threads use to the last one, if they are addressed as is right.
static bool hull_of(const struct kernel_range *range, uint64_t *start, uint64_t *end) {
    uint64_t each = bytes_of(range), odd = range->address, last = range->address;
    *start = range->address;
    for (unsigned axis = 0; axis < 3; axis++) {
        if (range->steps[axis] > STEP_MAX || range->steps[axis] < -STEP_MAX) return false;
        int64_t way = range->steps[axis] * (int64_t)(range->counts[axis] - 1);
        odd |= (uint64_t)range->steps[axis];
        if (way > 0)
            last += (uint64_t)way;
        else
            *start += (uint64_t)way;
    }
    *end = last + each;
    return !(odd & (each - 1)) && *start < *end;
}

// Looks further than the threads of this block do if the ones before it came up to here: more will follow.
static bool know_more(const struct kernel_range *range, struct known *before, uint64_t start, uint64_t end) {
    bool goes_on = before->site == range->site && start >= before->start && start <= before->end;
    uint64_t from = goes_on ? before->end : start;
    if (kind_of(range) != LOADS && (is_constant(start) || is_constant(end - 1))) return false;
    if (end - from > AHEAD_BYTES_MAX || !shadow_is_whole(checks_bits_of_memory(), from, end - from)) return false;
    uint64_t ahead = goes_on ? end - before->start : 0, most = AHEAD_BYTES_MAX;
    if (kind_of(range) != LOADS && is_constant(end + most)) ahead = 0;
    uint64_t until = ahead ? shadow_whole_until(checks_bits_of_memory(), end, ahead < most ? ahead : most) : end;
    *before = (struct known){goes_on ? before->start : start, until, range->site};
    return true;
}

// Whether threads of one row use bytes that follow each other.
static bool is_flat(const struct kernel_range *range) {
    return range->counts[1] == 1 && range->counts[2] == 1 && range->steps[0] == (int64_t)bytes_of(range);
}

static bool is_known_flat(const struct kernel_range *range) {
    const struct known *before = &known_here()[range->site % KNOWN_MAX];
    uint64_t each = bytes_of(range), start = range->address;
    if (before->site != range->site || start < before->start || start & (each - 1)) return false;
    return start + each * range->counts[0] <= before->end && range->counts[0];
}

static bool is_known(const struct kernel_range *range) {
    struct known *before = &known_here()[range->site % KNOWN_MAX];
    uint64_t start, end;
    if (!hull_of(range, &start, &end)) return false;
    if (before->site == range->site && start >= before->start && end <= before->end) return true;
    return know_more(range, before, start, end);
}

static bool is_right(const struct kernel_context *context, const struct kernel_range *range, uint64_t address,
                     uint64_t bytes) {
    struct access access = {.context = context, .address = address, .bytes = bytes, .kind = kind_of(range)};
    beside_lock();
    enum seen seen = checks_judge(&access);
    beside_unlock();
    return seen == SEEN_NOTHING;
}

// A store to memory that nobody has written is right as well, and `any_new`.
static bool span_is_right(const struct kernel_context *context, const struct kernel_range *range, uint64_t address,
                          uint64_t bytes, bool *any_new) {
    if (kind_of(range) != LOADS && is_constant(address)) return false;
    if (shadow_is_whole(checks_bits_of_memory(), address, bytes)) return true;
    if (kind_of(range) == STORES) {
        *any_new = true;
        return is_right(context, range, address, bytes);
    }
    uint64_t each = bytes_of(range);
    for (uint64_t at = address; at < address + bytes; at += each)
        if (!shadow_is_whole(checks_bits_of_memory(), at, each) && !is_right(context, range, at, each)) return false;
    return true;
}

static bool row_is_right(const struct kernel_context *context, const struct kernel_range *range, struct row row,
                         bool *any_new) {
    uint64_t each = bytes_of(range);
    if (row.address % each || row.step % (int64_t)each) return false;
    if (row.step == (int64_t)each) return span_is_right(context, range, row.address, each * row.count, any_new);
    for (uint32_t i = 0; i < row.count; i++, row.address += (uint64_t)row.step)
        if (!span_is_right(context, range, row.address, each, any_new)) return false;
    return true;
}

static bool range_is_right(const struct kernel_context *context, const struct kernel_range *range, bool *any_new) {
    if (!range->counts[0] || !range->counts[1] || !range->counts[2] || is_known(range)) return true;
    for (uint32_t z = 0; z < range->counts[2]; z++)
        for (uint32_t y = 0; y < range->counts[1]; y++)
            if (!row_is_right(context, range, row_of(range, y, z), any_new)) return false;
    return true;
}

// -- what happens in the loop ----------------------------------------------------------------------------------------

static void write_row(const struct kernel_range *range, struct row row) {
    uint64_t each = bytes_of(range);
    if (row.step == (int64_t)each) {
        shadow_write(row.address, each * row.count);
        return;
    }
    for (uint32_t i = 0; i < row.count; i++, row.address += (uint64_t)row.step) shadow_write(row.address, each);
}

static void write_range(const struct kernel_range *range) {
    if (!range->counts[0]) return;
    beside_lock();
    for (uint32_t z = 0; z < range->counts[2]; z++)
        for (uint32_t y = 0; y < range->counts[1]; y++) write_row(range, row_of(range, y, z));
    beside_unlock();
}

static enum touch touch_of(const struct kernel_range *range) {
    return kind_of(range) == STORES ? TOUCH_WRITE : TOUCH_READ;
}

// Rows whose bytes follow each other, of which the first one is known.
static void touch_rows(const struct kernel_range *range, struct row first, uint32_t z) {
    int64_t pitch = range->steps[1];
    uint32_t count = pitch ? range->counts[1] : 1;
    if (pitch < 0) first.address += (uint64_t)(pitch * (count - 1));
    struct touched_rows rows = {(uint64_t)(pitch < 0 ? -pitch : pitch), count, z};
    touched_rows(first.address, bytes_of(range) * first.count, rows, touch_of(range), range->site);
}

static void touch_each(const struct kernel_range *range, uint32_t z) {
    for (uint32_t y = 0; y < range->counts[1]; y++) {
        struct row row = row_of(range, y, z);
        for (uint32_t i = 0; i < row.count; i++)
            touched_use(row.address + (uint64_t)(row.step * i), bytes_of(range), touch_of(range), range->site);
    }
}

static void touch_range(const struct kernel_range *range) {
    uint64_t each = bytes_of(range);
    if (is_flat(range)) {
        touched_range(range->address, each * range->counts[0], touch_of(range), range->site);
        return;
    }
    if (!range->counts[0] || !range->counts[1]) return;
    for (uint32_t z = 0; z < range->counts[2]; z++) {
        struct row row = row_of(range, 0, z);
        if (row.step == (int64_t)each || row.count < 2)
            touch_rows(range, row, z);
        else
            touch_each(range, z);
    }
}

uint32_t quiesce_kernel_ranges(struct kernel_context *context, const struct kernel_range *ranges, uint32_t word) {
    uint32_t count = word & (OTHERS_READ - 1);
    bool is_new[RANGES_MAX] = {false}, any_new = false, any_shared = false;
    if (stillness_is_begun()) return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_shared(&ranges[i]) && is_flat(&ranges[i]) && is_known_flat(&ranges[i])) continue;
        if (is_shared(&ranges[i]) && !any_shared) shared_checks_begin_ranges(context);
        any_shared |= is_shared(&ranges[i]);
        bool right = is_shared(&ranges[i]) ? shared_checks_add_range(context, &ranges[i])
                                           : range_is_right(context, &ranges[i], &is_new[i]);
        if (!right) return 0;
        any_new |= is_new[i];
    }
    // An access that is judged by itself could be one to what is not yet written.
    if (any_new && word & OTHERS_READ) return 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_shared(&ranges[i]) && !memory_races_see_range(context, &ranges[i])) return 0;
    if (any_shared) shared_checks_keep_ranges();
    for (uint32_t i = 0; i < count; i++) {
        if (is_new[i]) write_range(&ranges[i]);
        if (!is_shared(&ranges[i])) touch_range(&ranges[i]);
    }
    return 1;
}

// -- registers in arrays ---------------------------------------------------------------------------------------------

#define LINE(type)                                                                                          \
    static bool is_line_of_##type(const uint32_t block[3], const type *array, int64_t steps[3]) {           \
        uint32_t x_count = block[0], y_count = block[1], z_count = block[2];                                \
        type x_step = x_count > 1 ? array[1] - array[0] : 0;                                                \
        type y_step = y_count > 1 ? array[x_count] - array[0] : 0;                                          \
        type z_step = z_count > 1 ? array[x_count * y_count] - array[0] : 0, differs = 0;                   \
        for (uint32_t z = 0; z < z_count; z++)                                                              \
            for (uint32_t y = 0; y < y_count; y++) {                                                        \
                const type *row = array + (z * y_count + y) * x_count;                                      \
                differs |= row[0] ^ (array[0] + y_step * y + z_step * z);                                   \
                for (uint32_t x = 1; x < x_count; x++) differs |= (row[x] - row[x - 1]) ^ x_step;           \
            }                                                                                               \
        steps[0] = (int64_t)x_step, steps[1] = (int64_t)y_step, steps[2] = (int64_t)z_step;                 \
        return !differs;                                                                                    \
    }
LINE(uint32_t)
LINE(uint64_t)

uint32_t quiesce_kernel_line(struct kernel_context *context, const void *array, uint32_t bytes, int64_t steps[3]) {
    if (bytes == sizeof(uint32_t)) return is_line_of_uint32_t(context->block, array, steps);
    return is_line_of_uint64_t(context->block, array, steps);
}
