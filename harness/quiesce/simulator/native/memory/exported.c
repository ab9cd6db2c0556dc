#include "memory/exported.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/stacks.h"
#include "machine/disk.h"
#include "machine/hidden.h"
#include "machine/mappings.h"
#include "machine/settings.h"
#include "memory/blocks.h"

bool exported_any;

bool exported_can(void) { return *ledger_stem(); }

bool exported_path(char *path, uint64_t bytes, const char *stem, uint64_t chunk) {
    char ending[64];
    snprintf(ending, sizeof ending, ".%llx.memory", (chunk - BLOCKS_BASE) / ARENA_CHUNK);
    return shared_path(path, bytes, stem, ending);
}

// -- pages -----------------------------------------------------------------------------------------------------------

static int file;  // that pages are written to
static uint64_t file_start;
static bool is_written;

static void write_pages(uint64_t start, uint64_t end) {
    while (is_written && start < end) {
        ssize_t count = pwrite(file, (const void *)start, end - start, (off_t)(start - file_start));
        if (count <= 0) is_written = false;
        start += count > 0 ? (uint64_t)count : 0;
    }
}

static bool has_length(int opened, uint64_t length) {
    struct stat status;
    if (fstat(opened, &status) || !disk_allows(length)) return false;
    return (uint64_t)status.st_size >= length || !ftruncate(opened, (off_t)length);
}

// Has whole pages lie in a file, with what they hold. Those that are in it already stay as they are.
static bool share_pages(const char *path, uint64_t chunk, uint64_t start, uint64_t end) {
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return false;
    file_start = chunk;
    is_written = has_length(file, end - chunk);
    if (is_written && fallocate(file, 0, (off_t)(start - chunk), (off_t)(end - start)))
        is_written = disk_has_other_reason();
    if (is_written) mappings_touched(start, end, write_pages);
    void *map = MAP_FAILED;
    if (is_written)
        map = mmap((void *)start, end - start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                   (off_t)(start - chunk));
    close(file);
    if (map == MAP_FAILED) return false;
    madvise(map, end - start, MADV_DONTDUMP);
    arena_is_shared = true;
    return true;
}

static bool share(const struct live *entry, struct shared_entry *shared) {
    uint64_t chunk = arena_run(block_bank(entry->address), entry->address);
    uint64_t start = entry->address & ~(PAGE_BYTES - 1ull);
    uint64_t end = (entry->address + entry->size_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1ull);
    char path[FOLDER_BYTES + 64];
    const char *stem = strrchr(ledger_stem(), '/') + 1;
    if (!exported_path(path, sizeof path, stem, chunk) || !share_pages(path, chunk, start, end)) return false;
    shared->hidden_address = HIDDEN(entry->address);
    shared->hidden_file = HIDDEN(chunk);
    shared->size_bytes = entry->size_bytes;
    shared->device = entry->device;
    return true;
}

// -- blocks ----------------------------------------------------------------------------------------------------------

static void see(enum seen seen, const struct live *entry, uint32_t process) {
    struct observation made = {.seen = (uint8_t)seen,
                               .thing = THING_DEVICE,
                               .device = entry->device,
                               .stack = stack_of_call(),
                               .object = entry->serial,
                               .address = entry->address,
                               .other = process,
                               .size_bytes = entry->size_bytes};
    if (seen == SEEN_EXPORTED)
        ledger_see(made);
    else
        ledger_see_wrong(made);
}

enum status memory_export(uint32_t live, struct shared_handle *handle) {
    const struct live *entry = ledger_live(live);
    bool is_own = live && entry->thing == THING_DEVICE && block_bank(entry->address);
    if (!is_own || entry->part || blocks[live].pool) return INVALID_VALUE;
    struct shared_entry *shared = shared_exported(THING_DEVICE, entry->serial);
    if (!shared) {
        shared = shared_export(THING_DEVICE, entry->serial);
        if (!shared) return OUT_OF_MEMORY;
        if (!share(entry, shared)) {
            shared->ended = 1;
            return OUT_OF_MEMORY;
        }
        exported_any = true;
        see(SEEN_EXPORTED, entry, 0);
    }
    shared_describe(shared, handle);
    return OK;
}

void exported_end(uint32_t live) {
    const struct live *entry = ledger_live(live);
    struct shared_entry *shared = shared_exported(THING_DEVICE, entry->serial);
    if (!shared) return;
    uint32_t opener = shared_opener(shared);
    if (opener) see(SEEN_FREED_WHILE_OPEN, entry, opener);
    __atomic_store_n(&shared->ended, 1, __ATOMIC_RELEASE);
}
