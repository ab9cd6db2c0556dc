#include "kernels/wrong_access.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/access_log.h"
#include "machine/settings.h"
#include "memory/blocks.h"
#include "memory/places.h"

enum { KNOWN_MAX = 4096, PLACES = 2 * KNOWN_MAX };

struct code_places running_code;

// One kind of mistake of one instruction, in launches from one place by one test.
struct mistake {
    const struct kernel_site *sites;  // of its kernel
    const char *test;
    uint32_t site, stack;
    uint64_t seen;
};

static struct known {
    struct mistake mistake;
    uint64_t count, told;  // 0: nothing is known here
    int64_t place;
    uint64_t line;  // the number of its line in the log; UINT64_MAX: it has none
} *known;
static uint32_t known_count;
static uint64_t logged_count;
static bool is_untold;

// Where a mistake is known, or where it belongs.
static struct known *find(const struct mistake *mistake) {
    uint64_t at = (uint64_t)mistake->sites ^ (uint64_t)mistake->test << 1;
    at = (at ^ (uint64_t)mistake->site << 32 ^ (uint64_t)mistake->stack << 8 ^ mistake->seen) * 0x9e3779b97f4a7c15;
    for (at >>= 32;; at++) {
        struct known *each = &known[at % PLACES];
        if (!each->count || !memcmp(&each->mistake, mistake, sizeof *mistake)) return each;
    }
}

// -- the block that it misses ----------------------------------------------------------------------------------------

static uint64_t distance(const struct live *block, uint64_t address) {
    if (address < block->address) return block->address - address;
    return address - block->address < block->size_bytes ? 0 : address - block->address - block->size_bytes;
}

static const struct live *nearest_block(uint64_t address) {
    const struct live *nearest = NULL;
    for (uint32_t i = 1; i < ledger->live_high; i++) {
        const struct live *each = ledger_live(i);
        bool is_block = (each->thing >= THING_DEVICE && each->thing <= THING_REGISTERED) || each->thing == THING_HEAP;
        if (!each->serial || !is_block) continue;
        if (!nearest || distance(each, address) < distance(nearest, address)) nearest = each;
    }
    return nearest;
}

bool wrong_access_is_near_a_block(uint64_t address) {
    enum { NEAR_BYTES = 4096 };
    const struct live *block = nearest_block(address);
    return block && distance(block, address) <= NEAR_BYTES;
}

bool wrong_access_is_just_before_a_block(uint64_t address) {
    const struct live *block = nearest_block(address);
    return block && address < block->address && block->address - address <= settings.red_zone_bytes;
}

// The block that an access would use if its address were off by 2^32 elements, because an index of 32 bits overflowed;
// or the one that it would just miss. NULL: there is none, or the access is near a block as it is.
static const struct live *block_of_overflow(uint64_t address, unsigned access_bytes) {
    const unsigned elements[] = {access_bytes, 1, 2, 4, 8, 12, 16, 24, 32};  // as traces/kernel_accesses.py
    if (wrong_access_is_near_a_block(address)) return NULL;
    for (unsigned i = 0; i < sizeof elements / sizeof *elements; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            uint64_t meant = address + (uint64_t)sign * ((uint64_t)elements[i] << 32);
            const struct live *block = nearest_block(meant);
            if (block && distance(block, meant) <= elements[i]) return block;
        }
    return NULL;
}

// -- observation -----------------------------------------------------------------------------------------------------

static const char *file_name(const struct code_places *code, uint32_t number) {
    for (const struct kernel_file *file = code->files; file && file->name; file++)
        if (file->number == number) return file->name;
    return NULL;
}

static struct logged_place place_of(const struct code_places *code, uint32_t number) {
    if (number == NO_SITE || !code->sites) return (struct logged_place){0};
    struct kernel_site site = code->sites[number];
    return (struct logged_place){.file = file_name(code, site.file),
                                 .caller = file_name(code, site.caller_file),
                                 .instruction = code->site_texts ? code->site_texts[number] : NULL,
                                 .line = site.source_line,
                                 .caller_line = site.caller_line,
                                 .ptx_line = site.line};
}

const char *place_in_words(const struct code_places *code, uint32_t site, char to[PLACE_WORDS_BYTES]) {
    *to = 0;
    if (site == NO_SITE || !code->sites) return to;
    struct kernel_site known = code->sites[site];
    const char *name = file_name(code, known.file);
    if (name && known.source_line)
        snprintf(to, PLACE_WORDS_BYTES, "%s:%u", name, known.source_line);
    else if (!known.line)  // of a library's function, which has operands
        snprintf(to, PLACE_WORDS_BYTES, "its operand %.800s", code->site_texts[site]);
    else
        snprintf(to, PLACE_WORDS_BYTES, "'%.800s' (line %u of its PTX)", code->site_texts ? code->site_texts[site] : "",
                 known.line);
    return to;
}

void thread_index(uint32_t number, const uint32_t threads[3], uint32_t index[3]) {
    index[0] = number % threads[0];
    index[1] = number / threads[0] % threads[1];
    index[2] = number / threads[0] / threads[1];
}

const struct kernel_array *wrong_access_array(uint32_t site) {
    const struct code_places *code = &running_code;
    if (!code->sites || !code->arrays || site == NO_SITE || !code->sites[site].array) return NULL;
    return &code->arrays[code->sites[site].array - 1];
}

// Its name, and that of the one which an access meets instead: nothing, if it lies between two.
static void name_arrays(const struct code_places *code, const struct wrong_access *wrong, const char *names[2]) {
    names[0] = code->arrays[code->sites[wrong->site].array - 1].name;
    for (const struct kernel_array *each = code->arrays; each->name; each++)
        if (wrong->address - each->offset < each->bytes) names[1] = each->name;
}

// Counts a line that was written at a place in the log, or not (-1).
static uint64_t numbered(int64_t place) { return place < 0 ? UINT64_MAX : logged_count++; }

static int64_t add_use(const struct heap_use *use) {
    struct logged_access logged = {.launch = use->launch,
                                   .test = use->test,
                                   .kernel = use->kernel,
                                   .place = place_of(&use->code, use->site),
                                   .made = UINT64_MAX,
                                   .freed = UINT64_MAX};
    memcpy(logged.block, use->block, sizeof logged.block);
    memcpy(logged.thread, use->thread, sizeof logged.thread);
    return access_log_add(&logged);
}

static int64_t add_to_log(const struct checked_launch *launch, const struct wrong_access *wrong) {
    struct logged_access logged = {.launch = launch->number,
                                   .test = launch->test,
                                   .kernel = launch->kernel,
                                   .place = place_of(&launch->code, wrong->site),
                                   .made = wrong->made ? numbered(add_use(wrong->made)) : UINT64_MAX,
                                   .freed = wrong->freed ? numbered(add_use(wrong->freed)) : UINT64_MAX};
    memcpy(logged.block, wrong->block, sizeof logged.block);
    thread_index(wrong->thread, wrong->threads, logged.thread);
    if (wrong->seen == SEEN_KERNEL_OUTSIDE_ARRAY) name_arrays(&launch->code, wrong, logged.arrays);
    if (wrong->other.is_there) {
        logged.has_other = true;
        logged.other_writes = wrong->other.writes;
        logged.other = place_of(&wrong->other.code, wrong->other.site);
        bool is_of_blocks = wrong->seen == SEEN_KERNEL_RACE_OF_BLOCKS || wrong->seen == SEEN_KERNEL_WAITS_FOR_EVER ||
                            wrong->seen == SEEN_KERNEL_LOOKS_FOR_EVER;
        memcpy(logged.other_block, is_of_blocks ? wrong->other.block : wrong->block, sizeof logged.other_block);
        memcpy(logged.other_thread, wrong->other.thread, sizeof logged.other_thread);
    }
    return access_log_add(&logged);
}

static void observe(const struct checked_launch *launch, const struct wrong_access *wrong, uint64_t line) {
    int flags = (wrong->writes ? FLAG_WRITES : 0) | (wrong->is_partly ? FLAG_PARTLY : 0);
    if (wrong->is_of_null) flags |= FLAG_OF_NULL;
    struct observation seen = {.seen = (uint8_t)wrong->seen,
                               .thing = THING_DEVICE,
                               .device = (uint16_t)launch->device,
                               .function = launch->function,
                               .flags = (uint16_t)flags,
                               .stack = launch->stack,
                               .stream = launch->stream,
                               .object = line,
                               .address = wrong->address,
                               .size_bytes = wrong->bytes};
    bool is_outside = wrong->seen == SEEN_KERNEL_OUT_OF_BOUNDS;
    bool is_far = is_outside || (wrong->seen == SEEN_KERNEL_NO_MEMORY && !wrong->is_of_null);
    const struct live *block = is_far ? block_of_overflow(wrong->address, wrong->bytes) : NULL;
    if (block) seen.seen = SEEN_KERNEL_OUT_OF_BOUNDS;
    if (is_outside && !block) block = nearest_block(wrong->address);
    struct span span = memory_find(wrong->address);
    bool is_of_heap = block_is_of_heap(wrong->address);
    if (!is_outside && span.thing != THING_NONE && !is_of_heap) {
        seen.other = span.start;
        seen.other_bytes = span.size_bytes;
        seen.thing = (uint8_t)span.thing;
    }
    if (block) {
        seen.other = block->address;
        seen.other_bytes = block->size_bytes;
        seen.thing = block->thing;
    } else if (wrong->missed.bytes) {
        seen.other = wrong->missed.start;
        seen.other_bytes = wrong->missed.bytes;
        if (is_of_heap) seen.thing = THING_HEAP;
    } else if (wrong->seen == SEEN_KERNEL_OUTSIDE_SHARED) {
        seen.other_bytes = wrong->shared_bytes;
    } else if (wrong->seen == SEEN_KERNEL_OUTSIDE_SURFACE) {
        seen.other = (uint64_t)wrong->row;
        seen.other_bytes = wrong->surface_bytes;
    }
    ledger_see_wrong(seen);
}

// Counts a mistake. Returns where what is known of it belongs; without a place in the log where nothing is yet. NULL:
// no memory is left.
static struct known *count(const struct mistake *mistake) {
    if (!known) known = calloc(PLACES, sizeof *known);
    if (!known) return NULL;
    struct known *found = find(mistake);
    is_untold = true;
    if (found->count++) return found;
    found->count = 0;
    if (known_count == KNOWN_MAX) {  // what is met again is observed again, and joined by who reads it
        wrong_accesses_tell();
        memset(known, 0, PLACES * sizeof *known);
        known_count = 0;
        found = find(mistake);
    }
    *found = (struct known){*mistake, 1, 1, -1, UINT64_MAX};
    known_count++;
    return found;
}

void wrong_access_see(const struct checked_launch *launch, const struct wrong_access *wrong, uint64_t times) {
    struct mistake mistake = {launch->code.sites, launch->test, wrong->site, launch->stack, wrong->seen};
    struct known *found = count(&mistake);
    if (!found) return;
    bool is_first = found->count == 1;
    found->count += times - 1;
    if (!is_first) return;
    found->place = add_to_log(launch, wrong);
    found->line = numbered(found->place);
    observe(launch, wrong, found->line);
}

uint64_t wrong_access_note_use(const struct heap_use *use, uint32_t stack) {
    struct mistake mistake = {use->code.sites, use->test, use->site, stack, SEEN_NOTHING};
    struct known *found = count(&mistake);
    if (!found) return UINT64_MAX;
    if (found->count > 1) return found->line;
    found->place = add_use(use);
    return found->line = numbered(found->place);
}

void wrong_accesses_tell(void) {
    if (!is_untold) return;
    is_untold = false;
    for (uint32_t i = 0; i < PLACES; i++) {
        if (known[i].count == known[i].told) continue;
        access_log_count(known[i].place, known[i].count);
        known[i].told = known[i].count;
    }
}

void wrong_accesses_close(void) {
    free(known);
    known = NULL;
    known_count = 0;
    logged_count = 0;
    is_untold = false;
}
