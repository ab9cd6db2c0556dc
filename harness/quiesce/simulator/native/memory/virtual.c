#include "memory/virtual.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ledger/failure.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "memory/address_space.h"
#include "memory/capacity.h"
#include "memory/refusal.h"
#include "memory/shadow.h"

enum { READ_WRITE = 3 };  // CUmemAccess_flags, of which 1 only reads

struct physical {
    uint64_t hidden_handle, serial, size_bytes;  // see hidden.h
    unsigned references, mappings;               // of a handle that was released as often as it was made, no references
    char *memory;
    struct virtual_properties properties;
};

static void see(enum seen seen, enum thing thing, unsigned device, uint64_t address, uint64_t size_bytes) {
    ledger_see((struct observation){.seen = (uint8_t)seen,
                                    .thing = (uint8_t)thing,
                                    .stack = stack_of_call(),
                                    .device = (uint16_t)device,
                                    .address = address,
                                    .size_bytes = size_bytes});
}

// -- address space ---------------------------------------------------------------------------------------------------

static bool has_mapping(const struct reservation *place) {
    for (uint64_t i = 0; i < granules_of(place->size_bytes); i++)
        if (place->granules[i].physical) return true;
    return false;
}

enum status virtual_give_back(uint64_t address, uint64_t size_bytes) {
    struct reservation *place = space_at(address);
    if (!place || space_start(place) != address || place->size_bytes != size_bytes || has_mapping(place))
        return INVALID_VALUE;
    space_give_back(place);
    return OK;
}

// -- physical memory -------------------------------------------------------------------------------------------------

enum status virtual_check(const struct virtual_properties *properties) {
    enum { PINNED = 1, ON_A_DEVICE = 1, FILE_DESCRIPTOR = 1 };
    if (properties->kind != PINNED) return INVALID_VALUE;
    if (properties->location.kind != ON_A_DEVICE || (properties->handle_kinds & ~FILE_DESCRIPTOR)) return NOT_SUPPORTED;
    return device_exists(properties->location.ordinal) ? OK : INVALID_DEVICE;
}

enum status virtual_create(uint64_t size_bytes, const struct virtual_properties *properties, uint64_t *handle) {
    enum status status = virtual_check(properties);
    if (!status && (!size_bytes || size_bytes % VIRTUAL_GRANULE)) status = INVALID_VALUE;
    if (status) return status;
    unsigned device = (unsigned)properties->location.ordinal;
    status = failure_meet(CALL_DEVICE);
    bool injected = status;
    if (!status && !memory_reserve(device, size_bytes)) status = OUT_OF_MEMORY;
    if (status) {
        refusal_see(THING_PHYSICAL, device, size_bytes, status, injected);
        return status;
    }
    struct physical *made = calloc(1, sizeof *made);
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *handle = made && memory != MAP_FAILED ? handle_make(THING_PHYSICAL, made, device, &made->serial, false) : 0;
    if (!*handle) {
        if (memory != MAP_FAILED) munmap(memory, size_bytes);
        free(made);
        memory_unreserve(device, size_bytes);
        return OUT_OF_MEMORY;
    }
    made->hidden_handle = HIDDEN(*handle);
    made->size_bytes = size_bytes;
    made->references = 1;
    made->memory = memory;
    made->properties = *properties;
    ledger_resize(handle_live_at(*handle), size_bytes);
    return OK;
}

static void free_unused(struct physical *physical) {
    if (physical->references || physical->mappings) return;
    munmap(physical->memory, physical->size_bytes);
    memory_unreserve((unsigned)physical->properties.location.ordinal, physical->size_bytes);
    handle_drop(HIDDEN(physical->hidden_handle));
    free(physical);
}

// What is released, and lives on in its mappings, is no handle of the client's any more.
static struct physical *find(uint64_t handle) {
    struct physical *physical = handle_find(THING_PHYSICAL, handle);
    if (!physical || physical->references) return physical;
    ledger_see_wrong((struct observation){.seen = SEEN_DEAD_HANDLE,
                                    .thing = THING_PHYSICAL,
                                    .stack = stack_of_call(),
                                    .address = handle,
                                    .object = physical->serial});
    return NULL;
}

enum status virtual_release(uint64_t handle) {
    struct physical *physical = find(handle);
    if (!physical) return INVALID_VALUE;
    physical->references--;
    free_unused(physical);
    return OK;
}

enum status virtual_retain(uint64_t address, uint64_t *handle) {
    const struct granule *granule = space_granule(address);
    if (!granule || !granule->physical) return INVALID_VALUE;
    granule->physical->references++;
    *handle = HIDDEN(granule->physical->hidden_handle);
    return OK;
}

enum status virtual_describe(uint64_t handle, struct virtual_properties *properties) {
    const struct physical *physical = find(handle);
    if (!physical) return INVALID_VALUE;
    *properties = physical->properties;
    return OK;
}

// -- mappings --------------------------------------------------------------------------------------------------------

enum status virtual_map(uint64_t address, uint64_t size_bytes, uint64_t handle) {
    struct physical *physical = find(handle);
    struct granule *granules = space_range(address, size_bytes);
    if (!physical || !granules || size_bytes > physical->size_bytes) return INVALID_VALUE;
    for (uint64_t i = 0; i < granules_of(size_bytes); i++)
        if (granules[i].physical) return INVALID_VALUE;
    // A mapping of shared memory whose old size is 0 becomes one more mapping of the same pages (mremap(2)).
    if (mremap(physical->memory, 0, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)address) == MAP_FAILED)
        return OUT_OF_MEMORY;
    mprotect((void *)address, size_bytes, PROT_NONE);  // "all mappings start with no accessibility setup"
    for (uint64_t i = 0; i < granules_of(size_bytes); i++)
        granules[i] = (struct granule){.physical = physical, .state = MAPPED, .first = !i};
    physical->mappings++;
    see(SEEN_ALLOCATED, THING_DEVICE, (unsigned)physical->properties.location.ordinal, address, size_bytes);
    return OK;
}

// How many granules the mapping has that begins at one of those which `end` lies behind.
static uint64_t length_of(const struct granule *granule, const struct granule *end) {
    const struct granule *next = granule + 1;
    while (next < end && next->physical == granule->physical && !next->first) next++;
    return (uint64_t)(next - granule);
}

static void unmap(uint64_t address, struct granule *granules, uint64_t count) {
    space_hide(address, count * VIRTUAL_GRANULE);
    for (unsigned i = 0; i < settings.devices; i++) shadow_forget_for(i, address, count * VIRTUAL_GRANULE);
    struct granule *granule = granules;
    while (granule < granules + count) {
        uint64_t length = length_of(granule, granules + count);
        struct physical *physical = granule->physical;
        for (uint64_t i = 0; i < length; i++) granule[i] = (struct granule){.state = UNMAPPED};
        granule += length;
        physical->mappings--;
        free_unused(physical);
    }
}

enum status virtual_unmap(uint64_t address, uint64_t size_bytes) {
    struct granule *granules = space_range(address, size_bytes);
    if (!granules) return INVALID_VALUE;
    if (granules->state == UNMAPPED) refuse_free(SEEN_FREED_TWICE, THING_DEVICE, address);
    struct reservation *place = space_at(address);
    uint64_t count = granules_of(size_bytes);
    const struct granule *behind = granules + count;
    bool cuts = behind < place->granules + granules_of(place->size_bytes) && behind->physical && !behind->first;
    for (uint64_t i = 0; i < count; i++)
        if (granules[i].state != MAPPED) return INVALID_VALUE;
    if (!granules->first || cuts) return INVALID_VALUE;
    for (uint64_t i = 0; i < count;) {
        uint64_t length = length_of(&granules[i], behind);
        unsigned device = (unsigned)granules[i].physical->properties.location.ordinal;
        see(SEEN_FREED, THING_DEVICE, device, address + i * VIRTUAL_GRANULE, length * VIRTUAL_GRANULE);
        for (uint64_t end = i + length; i < end; i++) granules[i].state = ENDING;
    }
    for (unsigned i = 0; i < settings.devices; i++) upcalls.order.finish_device(i);
    unmap(address, granules, count);
    return OK;
}

// -- access ----------------------------------------------------------------------------------------------------------

static bool is_usable(const struct granule *granule) {
    for (unsigned i = 0; granule->state == MAPPED && i < settings.devices; i++)
        if (granule->access[i]) return true;
    return false;
}

// One call for as many granules as are alike.
static void protect(uint64_t address, const struct granule *granules, uint64_t count) {
    for (uint64_t first = 0, behind; first < count; first = behind) {
        bool usable = is_usable(&granules[first]);
        for (behind = first + 1; behind < count && is_usable(&granules[behind]) == usable;) behind++;
        int rights = usable ? PROT_READ | PROT_WRITE : PROT_NONE;  // the host's, which must be able to copy
        mprotect((void *)(address + first * VIRTUAL_GRANULE), (behind - first) * VIRTUAL_GRANULE, rights);
    }
}

// Memory that lies at several addresses is written through any of them: all of it counts as written.
static void let_kernels_use(uint64_t address, const struct granule *granules, uint64_t count) {
    for (uint64_t i = 0; i < count; i++, address += VIRTUAL_GRANULE)
        for (unsigned device = 0; device < settings.devices; device++)
            if (granules[i].access[device] == READ_WRITE)
                shadow_write_for(device, address, VIRTUAL_GRANULE);
            else
                shadow_forget_for(device, address, VIRTUAL_GRANULE);
}

enum status virtual_set_access(uint64_t address, uint64_t size_bytes, const struct virtual_access *access,
                               size_t count) {
    struct granule *granules = space_range(address, size_bytes);
    if (!granules || !access || !count) return INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.kind != 1 || access[i].access < 0 || access[i].access > READ_WRITE ||
            access[i].access == 2)
            return INVALID_VALUE;
        if (!device_exists(access[i].location.ordinal)) return INVALID_DEVICE;
    }
    for (uint64_t i = 0; i < granules_of(size_bytes); i++)
        if (granules[i].state != MAPPED) return INVALID_VALUE;  // "must be a fully mapped address range"
    for (uint64_t i = 0; i < granules_of(size_bytes); i++)
        for (size_t each = 0; each < count; each++)
            granules[i].access[access[each].location.ordinal] = (unsigned char)access[each].access;
    protect(address, granules, granules_of(size_bytes));
    if (shadows_are_kept) let_kernels_use(address, granules, granules_of(size_bytes));
    return OK;
}

enum status virtual_get_access(uint64_t address, const struct virtual_location *location, unsigned long long *access) {
    const struct granule *granule = space_granule(address);
    if (!granule || granule->state != MAPPED || location->kind != 1) return INVALID_VALUE;
    if (!device_exists(location->ordinal)) return INVALID_DEVICE;
    *access = granule->access[location->ordinal];
    return OK;
}

// -- what lies where -------------------------------------------------------------------------------------------------

struct span virtual_find(uint64_t address) {
    const struct reservation *place = space_at(address);
    if (!place) return (struct span){.thing = THING_DEVICE, .start = address, .dead = space_was_used(address)};
    const struct granule *granule = &place->granules[granules_of(address - space_start(place))];
    const struct granule *end = place->granules + granules_of(place->size_bytes), *first = granule;
    bool was_used = granule->state == UNMAPPED || granule->state == ENDING;
    if (!is_usable(granule)) return (struct span){.thing = THING_DEVICE, .start = address, .dead = was_used};
    while (!first->first) first--;
    while (granule < end && is_usable(granule)) granule++;  // a use may go on in the mapping behind
    uint64_t start = space_start(place) + (uint64_t)(first - place->granules) * VIRTUAL_GRANULE;
    unsigned device = (unsigned)first->physical->properties.location.ordinal;
    return (struct span){THING_DEVICE, device, start, (uint64_t)(granule - first) * VIRTUAL_GRANULE, 0, false};
}

uint32_t virtual_live_at(uint64_t address) {
    const struct reservation *place = space_at(address);
    if (!place) return 0;
    const struct granule *granule = &place->granules[granules_of(address - space_start(place))];
    return granule->physical ? handle_live_at(HIDDEN(granule->physical->hidden_handle)) : 0;
}

uint32_t virtual_space_at(uint64_t address) {
    const struct reservation *place = space_covers(address) ? space_at(address) : NULL;
    return place ? place->live : 0;
}

// -- end -------------------------------------------------------------------------------------------------------------

void virtual_reset(unsigned device) {
    for (struct reservation *place = space_first(), *next; place; place = next) {
        next = place->next;
        struct granule *granule = place->granules, *end = granule + granules_of(place->size_bytes);
        while (granule < end) {
            uint64_t length = granule->physical ? length_of(granule, end) : 1;
            uint64_t start = space_start(place) + (uint64_t)(granule - place->granules) * VIRTUAL_GRANULE;
            if (granule->physical && (unsigned)granule->physical->properties.location.ordinal == device) {
                see(SEEN_FREED, THING_DEVICE, device, start, length * VIRTUAL_GRANULE);
                unmap(start, granule, length);
            }
            granule += length;
        }
        if (place->device == device && !has_mapping(place)) space_give_back(place);
    }
    enum thing thing;
    for (uint64_t handle = 0; (handle = handle_next(handle, &thing));) {
        struct physical *physical = thing == THING_PHYSICAL ? handle_find(thing, handle) : NULL;
        if (!physical || (unsigned)physical->properties.location.ordinal != device) continue;
        physical->references = 0;
        free_unused(physical);
    }
}

void virtual_close(void) {
    for (unsigned i = 0; i < settings.devices; i++) virtual_reset(i);
    space_close();
}
