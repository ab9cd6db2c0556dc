#include "memory/shared_table.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/disk.h"
#include "machine/mappings.h"
#include "machine/running.h"
#include "machine/settings.h"

#define HANDLE_MAGIC 0x51495043u
#define TABLE_ENDING ".exports"

bool shared_any;

static struct shared_table *own;
static unsigned own_count;  // entries at and after it were never used

static struct known {
    struct known *next;
    char stem[SHARED_STEM_BYTES];
    struct shared_table *table;
} *others;

static const char *own_stem(void) {
    const char *slash = strrchr(ledger_stem(), '/');
    return slash ? slash + 1 : "";
}

bool shared_path(char *path, uint64_t bytes, const char *stem, const char *ending) {
    int length = snprintf(path, bytes, "%s/%s%s", settings.folder, stem, ending);
    return length > 0 && (uint64_t)length < bytes;
}

static struct shared_table *map_table(const char *stem, bool is_new) {
    char path[FOLDER_BYTES + 64];
    if (!shared_path(path, sizeof path, stem, TABLE_ENDING)) return NULL;
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (is_new ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0) return NULL;
    struct stat status;
    bool is_whole = is_new ? disk_allows(sizeof *own) && !ftruncate(file, sizeof *own)
                           : !fstat(file, &status) && (uint64_t)status.st_size >= sizeof *own;
    void *map = is_whole ? mmap(NULL, sizeof *own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (map != MAP_FAILED && is_new && !disk_reserve(path, map, 0, sizeof *own)) {
        munmap(map, sizeof *own);
        return NULL;
    }
    return map == MAP_FAILED ? NULL : map;
}

// -- the order of calls ----------------------------------------------------------------------------------------------

static uint64_t *ticks;  // of the run: how many calls there were in processes that share

static void open_ticks(void) {
    char path[FOLDER_BYTES + 64];
    if (!shared_path(path, sizeof path, "ticks", "")) return;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return;
    void *map = ftruncate(file, PAGE_BYTES) ? MAP_FAILED
                                            : mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED) return;
    if (disk_reserve(path, map, 0, PAGE_BYTES))
        ticks = map;
    else
        munmap(map, PAGE_BYTES);
}

static void begin_to_share(void) {
    if (!shared_any) open_ticks();
    shared_any = true;
}

void shared_tick(void) {
    uint64_t tick = ticks ? __atomic_add_fetch(ticks, 1, __ATOMIC_ACQ_REL) : 0;
    ledger_see((struct observation){.seen = SEEN_TICK, .object = tick});
}

// -- what this process exports ---------------------------------------------------------------------------------------

struct shared_entry *shared_exported(enum thing thing, uint64_t serial) {
    for (unsigned i = 0; i < own_count; i++) {
        struct shared_entry *entry = &own->entries[i];
        if (entry->serial == serial && entry->thing == (uint32_t)thing && !entry->ended) return entry;
    }
    return NULL;
}

static struct shared_entry *unused_entry(void) {
    if (own_count < SHARED_ENTRIES) return &own->entries[own_count++];
    for (unsigned i = 0; i < own_count; i++)
        if (own->entries[i].ended && !shared_opener(&own->entries[i])) return &own->entries[i];
    return NULL;
}

struct shared_entry *shared_export(enum thing thing, uint64_t serial) {
    if (!*own_stem() || strlen(own_stem()) >= SHARED_STEM_BYTES) return NULL;
    if (!own && !(own = map_table(own_stem(), true))) return NULL;
    own->process = (uint32_t)getpid();
    begin_to_share();
    struct shared_entry *entry = shared_exported(thing, serial);
    if (entry || !(entry = unused_entry())) return entry;
    *entry = (struct shared_entry){.thing = (uint32_t)thing};
    __atomic_store_n(&entry->serial, serial, __ATOMIC_RELEASE);
    return entry;
}

void shared_describe(const struct shared_entry *entry, struct shared_handle *handle) {
    *handle = (struct shared_handle){.magic = HANDLE_MAGIC,
                                     .thing = entry->thing,
                                     .entry = (uint32_t)(entry - own->entries),
                                     .serial = entry->serial};
    strcpy(handle->stem, own_stem());
}

uint32_t shared_opener(const struct shared_entry *entry) {
    for (unsigned i = 0; i < SHARED_OPENERS; i++) {
        uint32_t process = __atomic_load_n(&entry->openers[i], __ATOMIC_ACQUIRE);
        if (process && process_is_running(process)) return process;
    }
    return 0;
}

// -- what others export ----------------------------------------------------------------------------------------------

bool shared_is_own(const struct shared_handle *handle) {
    return handle->magic == HANDLE_MAGIC && *own_stem() && !strncmp(handle->stem, own_stem(), SHARED_STEM_BYTES);
}

static struct shared_table *table_of(const char *stem) {
    for (struct known *each = others; each; each = each->next)
        if (!strcmp(each->stem, stem)) return each->table;
    struct known *made = calloc(1, sizeof *made);
    if (made) made->table = map_table(stem, false);
    if (!made || !made->table) {
        free(made);
        return NULL;
    }
    strcpy(made->stem, stem);
    made->next = others;
    others = made;
    begin_to_share();
    return made->table;
}

// A handle may be any bytes.
static bool is_handle(const struct shared_handle *handle, enum thing thing) {
    bool is_ours = handle->magic == HANDLE_MAGIC && handle->thing == (uint32_t)thing;
    bool is_name = memchr(handle->stem, 0, sizeof handle->stem) && !strchr(handle->stem, '/') && *handle->stem;
    return is_ours && is_name && handle->entry < SHARED_ENTRIES && handle->serial && *settings.folder;
}

bool shared_is_over(const struct shared_table *table, const struct shared_entry *entry) {
    return __atomic_load_n(&entry->ended, __ATOMIC_ACQUIRE) || __atomic_load_n(&table->exited, __ATOMIC_ACQUIRE) ||
           !process_is_running(table->process);
}

const struct shared_table *shared_find(const struct shared_handle *handle, enum thing thing,
                                       struct shared_entry **entry) {
    struct shared_table *table = is_handle(handle, thing) ? table_of(handle->stem) : NULL;
    if (!table) return NULL;
    *entry = &table->entries[handle->entry];
    bool is_it = __atomic_load_n(&(*entry)->serial, __ATOMIC_ACQUIRE) == handle->serial;
    return is_it && (*entry)->thing == handle->thing && !shared_is_over(table, *entry) ? table : NULL;
}

bool shared_open(struct shared_entry *entry) {
    for (unsigned i = 0; i < SHARED_OPENERS; i++) {
        uint32_t before = __atomic_load_n(&entry->openers[i], __ATOMIC_ACQUIRE);
        if (before && process_is_running(before)) continue;
        if (__atomic_compare_exchange_n(&entry->openers[i], &before, (uint32_t)getpid(), false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}

void shared_close(struct shared_entry *entry) {
    for (unsigned i = 0; i < SHARED_OPENERS; i++) {
        uint32_t mine = (uint32_t)getpid(), *place = &entry->openers[i];
        if (__atomic_compare_exchange_n(place, &mine, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return;
    }
}

// -- end -------------------------------------------------------------------------------------------------------------

void shared_exit(void) {
    if (own) __atomic_store_n(&own->exited, 1, __ATOMIC_RELEASE);
}

void shared_tables_close(void) {
    shared_exit();
    if (own) munmap(own, sizeof *own);
    own = NULL;
    own_count = 0;
    for (struct known *each = others, *next; each; each = next) {
        next = each->next;
        munmap(each->table, sizeof *each->table);
        free(each);
    }
    others = NULL;
    if (ticks) munmap(ticks, PAGE_BYTES);
    ticks = NULL;
    shared_any = false;
}
