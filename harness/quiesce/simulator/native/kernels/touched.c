#include "kernels/touched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/beside.h"
#include "kernels/list.h"
#include "kernels/touched_order.h"
#include "ledger/record_log.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "memory/places.h"
#include "memory/shadow.h"
#include "order/guard.h"

#define MAGIC 0x31454843554f5451ull  // "QTOUCHE1", little-endian

enum { CELL_BYTES = TOUCHED_CELL / 8, CELL_WORDS = CELL_BYTES / 8, RUNS_MAX = 2, OPEN_MAX = 512 };
enum { PIECES_MAX = 4096, MASKS_MAX = 16 << 20 };  // of a set that is kept
enum { CLEARED_MAX = 1 << 19 };  // so many cells are cleared before the memory of their bits is given back

_Static_assert((int)TOUCHES == (int)TOUCHED_TABLES, "a table for each kind of use");

// What was touched, in the order of the first touch: numbers of cells and offsets from SHADOW_BASE, for addresses would
// be signs that a client still knows a block.
struct noted {
    uint64_t cell;
    uint32_t site, touch;
};
struct range {
    uint64_t start, end;
    uint32_t site, touch;
};
struct piece {
    struct range range;
    size_t mask;  // where it begins among the masks
    uint32_t mask_bytes;
};

static struct list noted, ranges, pieces, masks, keys, unsorted;
// Ranges of one instruction that are as long as each other, `pitch` bytes apart: as a block uses them of a matrix.
static struct rows {
    struct range first;  // no end: none
    uint64_t pitch, count;
} open[OPEN_MAX], above[OPEN_MAX];  // which the next block may go on with; and those above of which they are the next
static bool any_open;
static size_t cleared;
static bool is_incomplete;
static struct record_log records;

static void *add(struct list *list, size_t count, size_t size) {
    void *place = list_add(list, count, size);
    is_incomplete |= count && !place;
    return place;
}

static unsigned char *bits_of(uint32_t touch, uint64_t cell) {
    return shadow_touched + touch * TOUCHED_STRIDE + cell * CELL_BYTES;
}

static unsigned char *kinds_of(uint64_t cell) { return shadow_touched + TOUCHES * TOUCHED_STRIDE + cell; }

// -- while a kernel runs ----------------------------------------------------------------------------------------------

void touched_note(uint64_t address, uint32_t kinds, uint32_t site) {
    if (beside) {
        beside_note(address, kinds, site);
        return;
    }
    uint64_t offset = address - SHADOW_BASE, cell = offset / TOUCHED_CELL;
    if (offset >= SHADOW_COVERS) return;
    unsigned char *known = kinds_of(cell);
    for (uint32_t touch = 0; touch < TOUCHES; touch++) {
        if (!(kinds >> touch & 1) || *known >> touch & 1) continue;
        struct noted *made = add(&noted, 1, sizeof *made);
        if (made) *made = (struct noted){cell, site, touch};
    }
    *known |= (unsigned char)kinds;
}

static void set_bits(enum touch touch, uint64_t start, uint64_t end) {
    unsigned char *table = shadow_touched + touch * TOUCHED_STRIDE;
    uint64_t first = start / 8, last = (end - 1) / 8;
    unsigned char at_first = (unsigned char)(0xffu << start % 8);
    unsigned char at_last = (unsigned char)(0xffu >> (7 - (end - 1) % 8));
    if (first == last) {
        table[first] |= at_first & at_last;
        return;
    }
    table[first] |= at_first;
    memset(table + first + 1, 0xff, last - first - 1);
    table[last] |= at_last;
}

static bool is_covered(uint64_t start, uint64_t bytes) {
    return shadow_touched && bytes && start < SHADOW_COVERS && bytes <= SHADOW_COVERS - start;
}

bool touched_is(uint64_t address, uint64_t bytes, enum touch touch) {
    uint64_t start = address - SHADOW_BASE;
    if (!is_covered(start, bytes)) return false;
    const unsigned char *table = shadow_touched + touch * TOUCHED_STRIDE;
    for (uint64_t at = start; at < start + bytes; at++)
        if (!(table[at / 8] >> at % 8 & 1)) return false;
    return true;
}

void touched_use(uint64_t address, uint64_t bytes, enum touch touch, uint32_t site) {
    uint64_t start = address - SHADOW_BASE;
    if (!is_covered(start, bytes)) return;
    if (beside) {
        beside_use(address, bytes, touch, site);
        return;
    }
    uint64_t first = start / TOUCHED_CELL, last_cell = (start + bytes - 1) / TOUCHED_CELL;
    for (uint64_t cell = first; cell <= last_cell; cell++)
        touched_note(SHADOW_BASE + cell * TOUCHED_CELL, 1u << touch, site);
    set_bits(touch, start, start + bytes);
}

static void close_range(const struct range *range) {
    if (!range->end) return;
    uint64_t bytes = range->end - range->start;
    if (block_is_of_heap(SHADOW_BASE + range->start)) return;
    struct range *made = bytes < TOUCHED_CELL ? NULL : add(&ranges, 1, sizeof *made);
    if (made)
        *made = *range;
    else
        touched_use(SHADOW_BASE + range->start, bytes, range->touch, range->site);
}

static void close_rows(struct rows *rows) {
    for (struct range each = rows->first; rows->count; rows->count--) {
        close_range(&each);
        each.start += rows->pitch;
        each.end += rows->pitch;
    }
    rows->first.end = 0;
}

static bool are_like(const struct rows *rows, const struct rows *others) {
    return rows->first.site == others->first.site && rows->first.touch == others->first.touch &&
           rows->pitch == others->pitch;
}

// Lets rows that the next block does not go on with be more of those above them, or else others.
static void end_rows(unsigned slot) {
    struct rows *rows = &open[slot], *before = &above[slot];
    if (!rows->first.end) return;
    uint64_t bytes = rows->first.end - rows->first.start;
    bool are_next = before->first.end && before->pitch && are_like(before, rows) &&
                    before->first.end - before->first.start == bytes &&
                    before->first.start + before->pitch * before->count == rows->first.start;
    if (are_next) {
        before->count += rows->count;
    } else {
        close_rows(before);
        *before = *rows;
    }
    rows->first.end = 0;
}

static void close_ranges(void) {
    for (unsigned i = 0; any_open && i < OPEN_MAX; i++) {
        end_rows(i);
        if (above[i].first.end) close_rows(&above[i]);
    }
    any_open = false;
}

void touched_rows(uint64_t address, uint64_t bytes, struct touched_rows like, enum touch touch, uint32_t site) {
    uint64_t start = address - SHADOW_BASE, end = start + bytes, pitch = like.count > 1 ? like.pitch : 0;
    unsigned slot = (site * 8 + touch + like.plane * 37) % OPEN_MAX;
    struct rows *before = &open[slot];
    struct rows rows = {{start, end, site, touch}, pitch, like.count};
    if (!is_covered(start, bytes + pitch * (like.count - 1))) return;
    if (beside) {
        beside_rows(address, bytes, like, touch, site);
        return;
    }
    bool goes_on = are_like(before, &rows) && before->count == rows.count && start >= before->first.start &&
                   start <= before->first.end;
    if (goes_on && before->first.end) {
        if (end > before->first.end) before->first.end = end;
        return;
    }
    end_rows(slot);
    *before = rows;
    any_open = true;
}

void touched_range(uint64_t address, uint64_t bytes, enum touch touch, uint32_t site) {
    touched_rows(address, bytes, (struct touched_rows){.count = 1}, touch, site);
}

void touched_forget(uint64_t address, unsigned bytes, uint32_t kinds) {
    uint64_t first = address - SHADOW_BASE;
    unsigned char *map = beside ? beside->touched : shadow_touched;
    if (first >= SHADOW_COVERS - bytes) return;
    for (uint32_t touch = 0; touch < TOUCHES; touch++)
        for (uint64_t at = first; kinds >> touch & 1 && at < first + bytes; at++)
            map[touch * TOUCHED_STRIDE + at / 8] &= (unsigned char)~(1u << at % 8);
}

void touched_lose(void) { is_incomplete = true; }

// -- pieces -----------------------------------------------------------------------------------------------------------

static struct piece *last_piece(uint64_t end, const struct noted *like) {
    struct piece *piece = pieces.count ? (struct piece *)pieces.first + pieces.count - 1 : NULL;
    bool goes_on = piece && piece->range.end == end && piece->range.touch == like->touch &&
                   piece->range.site == like->site;
    return goes_on ? piece : NULL;
}

static void add_whole(uint64_t start, uint64_t end, const struct noted *like) {
    struct piece *before = last_piece(start, like);
    if (before && !before->mask_bytes) {
        before->range.end = end;
        return;
    }
    struct piece *made = add(&pieces, 1, sizeof *made);
    if (made) *made = (struct piece){{start, end, like->site, like->touch}, 0, 0};
}

static void add_masked(uint64_t start, const unsigned char *bits, const struct noted *like) {
    struct piece *before = last_piece(start, like);
    bool goes_on = before && before->mask_bytes;
    bool is_one = goes_on && before->mask_bytes == CELL_BYTES;
    if (is_one && !memcmp((char *)masks.first + before->mask, bits, CELL_BYTES)) {
        before->range.end += TOUCHED_CELL;
        return;
    }
    if (is_one && before->range.end - before->range.start > TOUCHED_CELL) goes_on = false;
    size_t at = masks.count;
    unsigned char *mask = at < MASKS_MAX ? add(&masks, CELL_BYTES, 1) : NULL;
    if (!mask) {
        is_incomplete = true;
        return;
    }
    memcpy(mask, bits, CELL_BYTES);
    if (goes_on) {
        before->range.end += TOUCHED_CELL;
        before->mask_bytes += CELL_BYTES;
        return;
    }
    struct piece *made = add(&pieces, 1, sizeof *made);
    if (made) *made = (struct piece){{start, start + TOUCHED_CELL, like->site, like->touch}, at, CELL_BYTES};
}

static unsigned count_runs(const uint64_t words[CELL_WORDS]) {
    unsigned runs = 0;
    uint64_t carry = 0;
    for (unsigned i = 0; i < CELL_WORDS; i++) {
        runs += (unsigned)__builtin_popcountll(words[i] & ~(words[i] << 1 | carry));
        carry = words[i] >> 63;
    }
    return runs;
}

static bool bit_at(const uint64_t words[CELL_WORDS], unsigned at) { return words[at / 64] >> at % 64 & 1; }

static void add_cell(const struct noted *each) {
    uint64_t words[CELL_WORDS], start = each->cell * TOUCHED_CELL;
    unsigned char *bits = bits_of(each->touch, each->cell);
    memcpy(words, bits, sizeof words);
    memset(bits, 0, sizeof words);
    if (count_runs(words) > RUNS_MAX) {
        add_masked(start, (unsigned char *)words, each);
        return;
    }
    for (unsigned from = 0, to; from < TOUCHED_CELL; from = to) {
        bool is_set = bit_at(words, from);
        for (to = from; to < TOUCHED_CELL && bit_at(words, to) == is_set;)
            to += !(to % 64) && words[to / 64] == (is_set ? UINT64_MAX : 0) ? 64 : 1;
        if (is_set) add_whole(start + from, start + to, each);
    }
}

// Returns keys of so many items in order; NULL: there is no memory for them.
static struct touched_key *sort(size_t count, struct touched_key key_of(size_t item)) {
    keys.count = 0;
    struct touched_key *all = add(&keys, 2 * count, sizeof *all);
    if (!all) return NULL;
    for (size_t i = 0; i < count; i++) {
        all[i] = key_of(i);
        all[i].item = (uint32_t)i;
    }
    return touched_sort(all, all + count, count);
}

static struct touched_key key_of_cell(size_t item) {
    const struct noted *each = (const struct noted *)noted.first + item;
    return (struct touched_key){.place = each->cell, .touch = each->touch};
}

static struct touched_key key_of_range(size_t item) {
    const struct range *each = &((const struct piece *)unsorted.first + item)->range;
    return (struct touched_key){.place = each->start, .touch = each->touch};
}

static void sort_pieces(void) {
    struct list sorted = unsorted;
    unsorted = pieces;
    const struct touched_key *order = sort(unsorted.count, key_of_range);
    pieces = sorted;
    pieces.count = 0;
    struct piece *to = order ? add(&pieces, unsorted.count, sizeof *to) : NULL;
    for (size_t i = 0; to && i < unsorted.count; i++) to[i] = ((const struct piece *)unsorted.first)[order[i].item];
}

// Joins whole pieces that overlap or follow one another.
static void join_pieces(void) {
    struct piece *all = pieces.first;
    size_t kept = 0;
    for (size_t i = 0; i < pieces.count; i++) {
        struct piece *before = kept ? &all[kept - 1] : NULL, each = all[i];
        bool is_near = before && !before->mask_bytes && !each.mask_bytes &&
                       before->range.touch == each.range.touch && each.range.start <= before->range.end;
        if (is_near && each.range.end <= before->range.end) continue;
        if (is_near && before->range.site == each.range.site) {
            before->range.end = each.range.end;
            continue;
        }
        if (is_near) each.range.start = before->range.end;
        all[kept++] = each;
    }
    pieces.count = kept;
}

// Joins neighbours of several instructions, where there would be too many to keep: the first one stands for all.
static void join_places(void) {
    struct piece *all = pieces.first;
    size_t kept = 0;
    for (size_t i = 0; i < pieces.count; i++) {
        struct piece *before = kept ? &all[kept - 1] : NULL;
        bool is_next = before && !before->mask_bytes && !all[i].mask_bytes &&
                       before->range.touch == all[i].range.touch && before->range.end == all[i].range.start;
        if (is_next)
            before->range.end = all[i].range.end;
        else
            all[kept++] = all[i];
    }
    pieces.count = kept;
}

static void collect(void) {
    close_ranges();
    const struct noted *cells = noted.first;
    const struct touched_key *order = sort(noted.count, key_of_cell);
    for (size_t i = 0; i < noted.count; i++) {
        const struct noted *each = &cells[order ? order[i].item : i];
        if (block_is_of_heap(SHADOW_BASE + each->cell * TOUCHED_CELL))
            memset(bits_of(each->touch, each->cell), 0, CELL_BYTES);  // a free and a malloc order its uses
        else
            add_cell(each);
        *kinds_of(each->cell) = 0;
    }
    cleared += noted.count;
    const struct range *found = ranges.first;
    for (size_t i = 0; i < ranges.count; i++) {
        struct piece *made = add(&pieces, 1, sizeof *made);
        if (made) *made = (struct piece){found[i], 0, 0};
    }
    if (!ranges.count) return;
    sort_pieces();
    join_pieces();
}

static void give_back_bits(void) {
    uint64_t bytes = TOUCHES * TOUCHED_STRIDE + SHADOW_COVERS / TOUCHED_CELL;
    madvise(shadow_touched, bytes, MADV_DONTNEED);
    *kinds_of(0) = 0xff;  // nobody's, see shadow.h
    cleared = 0;
}

// -- the log ----------------------------------------------------------------------------------------------------------

static bool is_open(void) {
    char path[FOLDER_BYTES + 64] = "";
    if (records.header) return true;
    if (*settings.folder) snprintf(path, sizeof path, "%s.touched", ledger_stem());
    return record_log_open(&records, path, MAGIC, TOUCHED_LAYOUT, FULL_TOUCHED);
}

static uint32_t text(const char *text) {
    return record_log_intern(&records, TOUCHED_TEXT, text, (uint32_t)strlen(text));
}

static uint32_t place_of(const struct checked_launch *launch, uint32_t number) {
    char place[PLACE_WORDS_BYTES];
    return number == NO_SITE ? 0 : text(place_in_words(&launch->code, number, place));
}

// Where instructions are whose texts were written already: pieces of a few of them take turns.
struct places {
    struct {
        uint32_t number, text;
    } known[64];
};

static uint32_t known_place(struct places *places, const struct checked_launch *launch, uint32_t number) {
    unsigned slot = number % (sizeof places->known / sizeof *places->known);
    if (places->known[slot].number != number || !places->known[slot].text) {
        places->known[slot].number = number;
        places->known[slot].text = place_of(launch, number);
    }
    return places->known[slot].text;
}

static uint32_t write_set(const struct checked_launch *launch) {
    uint64_t count = pieces.count;
    size_t bytes = sizeof count + count * sizeof(struct touched_piece) + masks.count;
    char *content = calloc(1, bytes);
    if (!content) return 0;
    memcpy(content, &count, sizeof count);
    struct touched_piece *to = (struct touched_piece *)(content + sizeof count);
    char *mask = (char *)(to + count);
    struct places places = {0};
    const struct piece *all = pieces.first;
    for (size_t i = 0; i < count; i++) {
        struct range range = all[i].range;
        to[i] = (struct touched_piece){HIDDEN(SHADOW_BASE + range.start), HIDDEN(SHADOW_BASE + range.end),
                                       known_place(&places, launch, range.site), range.touch,
                                       all[i].mask_bytes, 0};
        if (!all[i].mask_bytes) continue;
        memcpy(mask, (const char *)masks.first + all[i].mask, all[i].mask_bytes);
        mask += all[i].mask_bytes;
    }
    uint32_t set = record_log_intern(&records, TOUCHED_SET, content, (uint32_t)bytes);
    free(content);
    return set;
}

static void write_launch(const struct checked_launch *launch) {
    if (!is_open()) return;
    struct touched_launch made = {.number = launch->number, .kernel = text(launch->kernel)};
    if (!is_incomplete && pieces.count <= PIECES_MAX) made.set = write_set(launch);
    if (!made.set) records.header->lost++;
    record_log_append(&records, TOUCHED_LAUNCH, &made, sizeof made);
}

static void start_over(bool by_user) {
    if (by_user || is_incomplete || cleared > CLEARED_MAX) give_back_bits();
    noted.count = ranges.count = pieces.count = masks.count = 0;
    is_incomplete = false;
}

// Memory that the host uses too is watched until it has waited for the kernel. One that tells the host something by
// volatile or atomic accesses may have told it that the rest is done.
static void guard_pieces(uint64_t number) {
    enum { GUARDED_MAX = 64 };
    const struct piece *all = pieces.first;
    unsigned guarded = 0;
    for (size_t i = 0; i < pieces.count; i++)
        if (all[i].range.touch > TOUCH_WRITE && memory_is_of_host(SHADOW_BASE + all[i].range.start)) return;
    for (size_t i = 0; i < pieces.count && guarded < GUARDED_MAX; i++) {
        uint64_t start = SHADOW_BASE + all[i].range.start;
        if (!memory_is_of_host(start)) continue;
        guard_launched(number, start, SHADOW_BASE + all[i].range.end, all[i].range.touch == TOUCH_WRITE);
        guarded++;
    }
}

void touched_end(const struct checked_launch *launch, bool by_user) {
    if (!shadow_touched) return;
    collect();
    guard_pieces(launch->number);
    if (pieces.count > PIECES_MAX) join_places();
    if (pieces.count || is_incomplete) write_launch(launch);
    start_over(by_user);
}

void touched_drop(void) {
    if (!shadow_touched) return;
    collect();
    start_over(false);
}

void touched_close(void) {
    struct list *all[] = {&noted, &ranges, &pieces, &masks, &keys, &unsorted};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) list_free(all[i]);
    record_log_close(&records);
    cleared = 0;
}

const void *touched_log(void) { return records.header; }
