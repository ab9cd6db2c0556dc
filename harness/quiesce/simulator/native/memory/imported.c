#include "memory/imported.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/mappings.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "memory/blocks.h"
#include "memory/exported.h"
#include "memory/refusal.h"
#include "memory/shadow.h"

// One that was closed stays until something else is imported into its slot: a use of it is told as such.
static struct import {
    struct import *next;
    const struct shared_table *table;
    struct shared_entry *entry;
    uint64_t serial;             // of the exporter's
    uint64_t hidden_address;     // see hidden.h
    uint64_t size_bytes;
    uint32_t live;               // 0: closed
    unsigned opens;
    bool is_over;  // its exporter has freed it, or has ended
} *imports;

static uint64_t address_of(const struct import *import) { return HIDDEN(import->hidden_address); }
static uint64_t page_of(uint64_t address) { return address & ~(PAGE_BYTES - 1ull); }
static uint64_t mapped_bytes(const struct import *import) {
    return page_of(address_of(import) + import->size_bytes + PAGE_BYTES - 1) - page_of(address_of(import));
}

static void see(enum seen seen, const struct import *import) {
    ledger_see((struct observation){.seen = (uint8_t)seen,
                                    .thing = THING_IMPORTED,
                                    .device = (uint16_t)import->entry->device,
                                    .stack = stack_of_call(),
                                    .object = import->serial,
                                    .address = address_of(import),
                                    .other = import->table->process,
                                    .size_bytes = import->size_bytes});
}

static struct import *in_slot(uint64_t slot_start) {
    struct import *each = imports;
    while (each && page_of(address_of(each)) != slot_start) each = each->next;
    return each;
}

uint64_t imported_start(uint64_t slot_start) {
    const struct import *import = in_slot(slot_start);
    return import ? address_of(import) : slot_start;
}

// -- open ------------------------------------------------------------------------------------------------------------

static bool map(const struct import *import, const char *stem) {
    uint64_t start = page_of(address_of(import)), chunk = HIDDEN(import->entry->hidden_file);
    uint64_t from = page_of(HIDDEN(import->entry->hidden_address)) - chunk, bytes = mapped_bytes(import);
    char path[FOLDER_BYTES + 64];
    if (!exported_path(path, sizeof path, stem, chunk)) return false;
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    struct stat status;
    void *got = MAP_FAILED;
    if (!fstat(file, &status) && (uint64_t)status.st_size >= from + bytes)
        got = mmap((void *)start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, (off_t)from);
    close(file);
    if (got == MAP_FAILED) return false;
    madvise(got, bytes, MADV_DONTDUMP);
    arena_is_shared = true;
    return true;
}

static void unmap(const struct import *import) {
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    void *start = (void *)page_of(address_of(import));
    mmap(start, mapped_bytes(import), PROT_READ | PROT_WRITE, how, -1, 0);
    madvise(start, mapped_bytes(import), MADV_DONTDUMP);
}

// A slot that begins with a page: those of more than 16 KiB do.
static uint64_t take_slot(unsigned device, uint64_t bytes, uint32_t live) {
    enum { PAGED_BYTES = 32 << 10 };
    return arena_take(&banks[device], bytes < PAGED_BYTES ? PAGED_BYTES : bytes, live);
}

static enum status begin(struct shared_entry *entry, struct import **made) {
    uint64_t within = HIDDEN(entry->hidden_address) % PAGE_BYTES;
    uint32_t live = ledger_add((struct live){.size_bytes = entry->size_bytes,
                                             .device = (uint16_t)entry->device,
                                             .thing = THING_IMPORTED,
                                             .context = (uint8_t)device_context()});
    uint64_t slot = live && blocks_make_room(live) ? take_slot(entry->device, within + entry->size_bytes, live) : 0;
    *made = slot ? in_slot(slot) : NULL;
    if (slot && !*made && (*made = calloc(1, sizeof **made))) {
        (*made)->next = imports;
        imports = *made;
    }
    if (!*made) {
        if (slot) arena_give(&banks[entry->device], block_slot(slot), true);
        if (live) ledger_remove(live);
        return OUT_OF_MEMORY;
    }
    (*made)->hidden_address = HIDDEN(slot + within);
    (*made)->size_bytes = entry->size_bytes;
    (*made)->live = live;
    (*made)->opens = 1;
    (*made)->is_over = false;
    ledger_live(live)->address = slot + within;
    ledger_live(live)->stack = stack_of_call();
    blocks[live] = (struct block){entry->size_bytes, NULL, 0};
    return OK;
}

static void end(struct import *import) {
    struct arena_slot slot = block_slot(address_of(import));
    shadow_forget(address_of(import), import->size_bytes);
    unmap(import);
    ledger_remove(import->live);
    import->live = 0;
    arena_give(block_bank(address_of(import)), slot, settings.recycle != RECYCLE_NEVER);
}

static struct import *known(const struct shared_entry *entry, uint64_t serial) {
    struct import *each = imports;
    while (each && !(each->live && each->entry == entry && each->serial == serial)) each = each->next;
    return each;
}

// "For contexts on different devices cudaIpcOpenMemHandle can attempt to enable peer access between the devices as if
// the user called cudaDeviceEnablePeerAccess": the only flag that there is asks for it.
static void enable_peer(const struct shared_entry *entry) {
    if (entry->device != device_current()) device_enable_peer(entry->device);
}

enum status memory_import(const struct shared_handle *handle, uint64_t *address) {
    enum status status = upcalls.order.forbid_unsafe();
    if (status) return status;
    if (shared_is_own(handle)) return INVALID_CONTEXT;
    struct shared_entry *entry;
    const struct shared_table *table = shared_find(handle, THING_DEVICE, &entry);
    if (!table || entry->device >= settings.devices) return INVALID_HANDLE;
    struct import *import = known(entry, handle->serial);
    if (import) {
        import->opens++;
        enable_peer(entry);
        *address = address_of(import);
        return OK;
    }
    if (!shared_open(entry)) return OUT_OF_MEMORY;
    status = begin(entry, &import);
    if (!status) {
        import->table = table;
        import->entry = entry;
        import->serial = handle->serial;
        if (!map(import, handle->stem)) {
            end(import);
            status = INVALID_HANDLE;
        }
    }
    if (status) {
        shared_close(entry);
        return status;
    }
    shadow_write(address_of(import), import->size_bytes);  // who exports it may have written all of it
    see(SEEN_ALLOCATED, import);
    enable_peer(entry);
    *address = address_of(import);
    return OK;
}

// -- close -----------------------------------------------------------------------------------------------------------

enum status memory_end_import(uint64_t address) {
    enum status status = upcalls.order.forbid_unsafe();
    if (status) return status;
    struct import *import = imports;
    while (import && !(address_of(import) == address && import->live)) import = import->next;
    if (!import) {
        struct arena_slot slot = block_slot(address);
        bool twice = imported_start(slot.start) == address && block_use(slot) == ARENA_DEAD;
        refuse_free(twice ? SEEN_FREED_TWICE : SEEN_FREED_FOREIGN, THING_IMPORTED, address);
        return INVALID_VALUE;
    }
    if (--import->opens) return OK;
    for (unsigned i = 0; i < settings.devices; i++) upcalls.order.finish_device(i);
    if (!import->live) return OK;  // another thread's reset has ended it meanwhile
    see(SEEN_FREED, import);
    shared_close(import->entry);
    end(import);
    return OK;
}

void imported_look(void) {
    for (struct import *import = imports; import; import = import->next) {
        if (!import->live || import->is_over || !shared_is_over(import->table, import->entry)) continue;
        import->is_over = true;
        blocks[import->live].flags |= MEMORY_ENDED;
        shadow_forget(address_of(import), import->size_bytes);
        see(SEEN_EXPORTER_FREED, import);
    }
}

void imported_reset(unsigned device) {
    for (struct import *import = imports; import; import = import->next) {
        if (!import->live || import->entry->device != device) continue;
        see(SEEN_FREED, import);
        shared_close(import->entry);
        end(import);
    }
}

// -- end -------------------------------------------------------------------------------------------------------------

void imported_exit(void) {
    for (struct import *each = imports; each; each = each->next)
        if (each->live) shared_close(each->entry);
}

void imported_close(void) {
    imported_exit();
    for (struct import *each = imports, *next; each; each = next) {
        next = each->next;
        free(each);
    }
    imports = NULL;
}
