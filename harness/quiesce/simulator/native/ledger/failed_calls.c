#include "ledger/failed_calls.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/disk.h"
#include "machine/lock.h"
#include "machine/settings.h"

#define MAGIC 0x31444c4941465551ull  // "QUFAILD1", little-endian

// From here on entries name no place, so that there is one for each function and error, however many places there are.
enum { PLACED_MAX = FAILED_CALLS_MAX * 3 / 4, SLOTS = FAILED_CALLS_MAX * 2, PENDING_MAX = 1024 };

static struct table {
    struct failed_calls_header header;
    struct failed_call calls[FAILED_CALLS_MAX];
} *table;  // NULL: nothing has failed yet
static bool is_closed_to_all;  // its file can't be made
static uint16_t slots[SLOTS];  // a hash table of entries, by their number from 1

// Failures that nobody has looked at yet, by the thread that may still do so. Of too many the first ones are let go:
// they stay unnoticed.
static struct pending {
    uint64_t count;
    uint32_t thread;
    uint16_t entry;
    bool keeps;
} pending[PENDING_MAX];
static unsigned pending_count;

static bool open_table(void) {
    if (table) return true;
    if (is_closed_to_all || !*settings.folder) return false;
    char path[FOLDER_BYTES + 64];
    snprintf(path, sizeof path, "%s.failed", ledger_stem());
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void *start = MAP_FAILED;
    if (file >= 0 && disk_allows(sizeof *table) && ftruncate(file, sizeof *table) == 0)
        start = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (start != MAP_FAILED && !disk_reserve(path, start, 0, sizeof *table)) {
        munmap(start, sizeof *table);
        start = MAP_FAILED;
    }
    if (start == MAP_FAILED) {
        if (file >= 0) unlink(path);
        is_closed_to_all = true;
        ledger_miss(FULL_FAILED);
        fputs("quiesce: failed calls can't be noted\n", stderr);
        return false;
    }
    madvise(start, sizeof *table, MADV_DONTFORK);
    table = start;
    table->header = (struct failed_calls_header){.magic = MAGIC, .layout = FAILED_CALLS_LAYOUT};
    return true;
}

static bool is_same(const struct failed_call *call, const char *function, enum status answer, unsigned flags,
                    uint32_t stack) {
    return call->stack == stack && call->answer == (int)answer && call->flags == flags &&
           !strncmp(call->function, function, FAILED_CALL_NAME_BYTES - 1);
}

// Returns the number of an entry, from 1, which is made if there is room; 0 where there is none.
static uint16_t entry_of(const char *function, enum status answer, unsigned flags, uint32_t stack) {
    uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
    for (const char *each = function; *each; each++) hash = (hash ^ (unsigned char)*each) * 0x100000001b3ull;
    hash = (hash ^ (uint64_t)answer ^ (uint64_t)flags << 20 ^ (uint64_t)stack << 24) * 0x100000001b3ull;
    uint64_t slot = (hash >> 20) % SLOTS;
    for (; slots[slot]; slot = (slot + 1) % SLOTS)
        if (is_same(&table->calls[slots[slot] - 1], function, answer, flags, stack)) return slots[slot];
    if (stack && table->header.count >= PLACED_MAX) return entry_of(function, answer, flags, 0);
    if (table->header.count == FAILED_CALLS_MAX) return 0;
    struct failed_call *made = &table->calls[table->header.count];
    *made = (struct failed_call){
        .observation = ledger->ring_count, .stack = stack, .answer = (int)answer, .flags = flags};
    strncpy(made->function, function, FAILED_CALL_NAME_BYTES - 1);
    slots[slot] = (uint16_t)(table->header.count + 1);
    __atomic_store_n(&table->header.count, table->header.count + 1, __ATOMIC_RELEASE);
    return slots[slot];
}

static void expect_a_look(uint16_t entry, bool keeps) {
    uint32_t thread = ledger_thread();
    for (unsigned i = pending_count; i-- > 0;) {
        struct pending *each = &pending[i];
        if (each->entry == entry && each->thread == thread && each->keeps == keeps) {
            each->count++;
            return;
        }
    }
    if (pending_count == PENDING_MAX) memmove(pending, pending + 1, --pending_count * sizeof *pending);
    pending[pending_count] = (struct pending){1, thread, entry, keeps};
    __atomic_store_n(&pending_count, pending_count + 1, __ATOMIC_RELAXED);
}

void failed_calls_note(const char *function, enum status answer, unsigned flags, bool keeps) {
    if (!function || !*function || !open_table()) return;
    uint16_t entry = entry_of(function, answer, flags, stack_of_call());
    if (!entry) {
        table->header.lost++;
        return;
    }
    table->calls[entry - 1].count++;
    table->calls[entry - 1].unnoticed++;
    expect_a_look(entry, keeps);
}

// Takes away what this thread has looked at: what the runtime kept, or what a call answered.
static void notice(bool keeps, int answer) {
    unsigned left = 0;
    uint32_t thread = ledger_thread();
    for (unsigned i = 0; i < pending_count; i++) {
        struct pending *each = &pending[i];
        struct failed_call *call = &table->calls[each->entry - 1];
        bool is_looked_at = each->thread == thread && (keeps ? each->keeps : call->answer == answer);
        if (is_looked_at)
            call->unnoticed -= each->count;
        else
            pending[left++] = *each;
    }
    __atomic_store_n(&pending_count, left, __ATOMIC_RELAXED);
}

void failed_calls_fetched(void) { notice(true, OK); }

void failed_calls_looked_up(int answer) {
    if (!__atomic_load_n(&pending_count, __ATOMIC_RELAXED)) return;
    lock_take();
    notice(false, answer);
    lock_release();
}

void failed_calls_close(void) {
    if (table) munmap(table, sizeof *table);
    failed_calls_forget();
}

void failed_calls_forget(void) {
    table = NULL;
    is_closed_to_all = false;
    pending_count = 0;
    memset(slots, 0, sizeof slots);
}
