// What the ring has no more room for, in a file beside the ledger: each observation with its number, in their order.
//
// Blocks that the very next observation freed are left out, but the largest of each part: nobody used them, and
// programs make more of them than of all else. runtime/ledger.py reads the file.
#include <stdio.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "machine/disk.h"

static char path[1024];
static uint64_t left_bytes;
static struct kept batch[LEDGER_PART];
static unsigned count;

void saved_open(const char *stem, uint64_t bytes) {
    left_bytes = *stem ? bytes : 0;
    snprintf(path, sizeof path, "%s.saved", stem);
}

void saved_stop(void) { left_bytes = 0; }

static void take(const struct ledger_part *part, const struct observation *observation, uint64_t number) {
    batch[count++] = (struct kept){number + (uint64_t)(observation - part->begin), *observation};
}

static void take_largest(const struct ledger_part *part, uint64_t number) {
    take(part, part->largest - 1, number);
    take(part, part->largest, number);
}

// A part of nothing but pairs, or one that ends between two of a pair, is not read: it is not in a cache any more.
static bool take_ends(const struct ledger_part *part, uint64_t number) {
    const struct observation *first = part->begin, *last = first + part->length - 1;
    uint64_t others = part->length - 2 * part->pairs;
    bool is_between = others == 2 && part->length > 2 && !ledger_is_pair(first, first + 1) &&
                      !ledger_is_pair(last - 1, last);
    if (others && !is_between) return false;
    if (others) take(part, first, number);
    if (part->largest) take_largest(part, number);
    if (others) take(part, last, number);
    return true;
}

static void take_others(const struct ledger_part *part, uint64_t number) {
    const struct observation *end = part->begin + part->length;
    for (const struct observation *each = part->begin; each < end; each++) {
        if (each + 1 < end && ledger_is_pair(each, each + 1)) {
            if (++each == part->largest) take_largest(part, number);
        } else {
            take(part, each, number);
        }
    }
}

bool saved_add(const struct ledger_part *part, uint64_t number) {
    count = 0;
    if (left_bytes && !take_ends(part, number)) take_others(part, number);
    uint64_t bytes = count * sizeof *batch;
    bool is_kept = bytes && bytes <= left_bytes && disk_append(path, batch, bytes);
    if (!is_kept && left_bytes) unlink(path);  // what is cut short is of no use
    left_bytes = is_kept ? left_bytes - bytes : 0;
    return is_kept;
}
