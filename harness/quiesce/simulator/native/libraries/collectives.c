// Communicators of NCCL and RCCL, whose functions have the same names: in one process, for one rank or one on each
// device.
//
// Statuses and signatures are those of nccl.h (the wheels nvidia-nccl have it). Ranks of other processes, or of other
// threads, are not simulated.

#include <string.h>

#include "ledger/unsimulated.h"
#include "libraries/calls.h"
#include "machine/device.h"
#include "machine/settings.h"
#include "memory/memory.h"

enum { RANK, RANKS, FINALIZED };

enum { INVALID_USAGE = 5 };

static const struct library NCCL = {THING_COMMUNICATOR, .no_object = 4, .wrong = 4, .no_memory = 1, .failed = 3};
static const struct releases NCCL_RELEASES = {10000, 100, {{2, 16, 5}}, {{2, 26, 5}}, {{2, 27, 7}}};
static const struct releases RCCL_RELEASES = {10000, 100, {{2, 18, 3}}, {{2, 22, 3}}, {{2, 26, 6}}};

struct unique_id {
    char content[128];
};

static uint64_t unique_ids;  // that were given out
static _Thread_local unsigned groups;  // that a thread began and did not end

VERSION(NCCL, ncclGetVersion, *(settings.flavour == FLAVOUR_HIP ? &RCCL_RELEASES : &NCCL_RELEASES))

FUNCTION(ncclGetUniqueId)(struct unique_id *id) {
    enum status status = object_enter("ncclGetUniqueId");
    if (!status && !id) status = INVALID_VALUE;
    if (!status) {
        *id = (struct unique_id){{0}};
        uint64_t number = ++unique_ids;
        memcpy(id->content, &number, sizeof number);
    }
    return object_leave(&NCCL, status);
}

// -- lifetimes -------------------------------------------------------------------------------------------------------

static enum status make(int rank, int ranks, void **communicator) {
    uint64_t handle;
    enum status status = object_make(&NCCL, &handle);
    if (status) return status;
    struct library_object *object = object_find(&NCCL, handle);
    object->values[RANK] = rank;
    object->values[RANKS] = ranks;
    *communicator = (void *)handle;
    return OK;
}

static int join(const char *function, void **communicator, int ranks, int rank) {
    enum status status = object_enter(function);
    if (!status && (!communicator || ranks < 1 || rank < 0 || rank >= ranks)) status = INVALID_VALUE;
    if (!status && ranks > 1)
        status = unsimulated(function, "for more than one rank: ask for one, or use ncclCommInitAll");
    if (!status) status = make(rank, ranks, communicator);
    return object_leave(&NCCL, status);
}

FUNCTION(ncclCommInitRank)(void **communicator, int ranks, struct unique_id id, int rank) {
    (void)id;
    return join("ncclCommInitRank", communicator, ranks, rank);
}
FUNCTION(ncclCommInitRankConfig)(void **communicator, int ranks, struct unique_id id, int rank, void *config) {
    (void)id, (void)config;
    return join("ncclCommInitRankConfig", communicator, ranks, rank);
}

// One communicator for each device; NULL for the list: devices 0 to count - 1.
FUNCTION(ncclCommInitAll)(void **communicators, int count, const int *devices) {
    enum status status = object_enter("ncclCommInitAll");
    if (!status && (!communicators || count < 1 || count > (int)settings.devices)) status = INVALID_VALUE;
    unsigned before = device_current();
    for (int i = 0; i < count && !status; i++) {
        status = device_select(devices ? devices[i] : i) ? INVALID_VALUE : make(i, count, &communicators[i]);
        for (int made = 0; status && made < i; made++) object_end(object_find(&NCCL, (uint64_t)communicators[made]));
    }
    if (count > 0) device_select((int)before);
    return object_leave(&NCCL, status);
}

DESTROY(NCCL, ncclCommDestroy)
DESTROY(NCCL, ncclCommAbort)

FUNCTION(ncclCommFinalize)(void *communicator) {
    return object_set("ncclCommFinalize", &NCCL, communicator, FINALIZED, true, true);
}

// -- questions -------------------------------------------------------------------------------------------------------

GET(NCCL, ncclCommCount, RANKS)
GET(NCCL, ncclCommUserRank, RANK)

FUNCTION(ncclCommCuDevice)(void *communicator, int *device) {
    int answer;
    struct library_object *object = object_of_call("ncclCommCuDevice", &NCCL, (uint64_t)communicator, &answer);
    if (!object) return answer;
    if (device) *device = (int)object->device;
    return object_leave(&NCCL, device ? OK : INVALID_VALUE);
}

FUNCTION(ncclCommGetAsyncError)(void *communicator, int *error) {
    int answer;
    struct library_object *object = object_of_call("ncclCommGetAsyncError", &NCCL, (uint64_t)communicator, &answer);
    if (!object) return answer;
    if (error) *error = 0;
    return object_leave(&NCCL, error ? OK : INVALID_VALUE);
}

// -- groups and memory -----------------------------------------------------------------------------------------------

FUNCTION(ncclGroupStart)(void) {
    groups++;
    return 0;
}
FUNCTION(ncclGroupEnd)(void) {
    if (!groups) return INVALID_USAGE;
    groups--;
    return 0;
}

FUNCTION(ncclMemAlloc)(void **address, size_t bytes) {
    enum status status = object_enter("ncclMemAlloc");
    uint64_t made = 0;
    if (!status && !address) status = INVALID_VALUE;
    if (!status) status = memory_allocate(THING_DEVICE, device_current(), bytes, 0, &made);
    if (!status) *address = (void *)made;
    return object_leave(&NCCL, status);
}
FUNCTION(ncclMemFree)(void *address) {
    enum status status = object_enter("ncclMemFree");
    if (!status) status = memory_free(THING_DEVICE, THING_DEVICE, (uint64_t)address);
    return object_leave(&NCCL, status);
}
