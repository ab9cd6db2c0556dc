// Communicators of NCCL and RCCL, whose functions have the same names: in one process, for one rank or one on each
// device.
//
// Statuses and signatures are those of nccl.h (the wheels nvidia-nccl have it). Ranks of other processes, or of other
// threads, are not simulated. What one rank reduces, sends and receives is computed (quiesce.libraries.collectives).

#include <stdlib.h>
#include <string.h>

#include "ledger/unsimulated.h"
#include "libraries/computed.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "memory/memory.h"
#include "memory/places.h"

// Of a communicator. Each operation of its own has the type of its factor, plus one, and the factor's bits.
enum { RANK, RANKS, FINALIZED, SENT, OPERATIONS, OPERATIONS_MAX = 8 };

enum { INVALID_USAGE = 5, OPERATION_FIRST = 5 };  // ncclNumOps

static const struct library NCCL = {
    THING_COMMUNICATOR, .no_object = 4, .wrong = 4, .no_memory = 1, .failed = 3, .unsupported = 3};
static const struct releases NCCL_RELEASES = {10000, 100, {{2, 16, 5}}, {{2, 26, 5}}, {{2, 27, 7}}};
static const struct releases RCCL_RELEASES = {10000, 100, {{2, 18, 3}}, {{2, 22, 3}}, {{2, 26, 6}}};

struct unique_id {
    char content[128];
};

static uint64_t unique_ids;  // that were given out
static _Thread_local unsigned groups;  // that a thread began and did not end

// Messages of a group that have no other side yet: all were sent, or all are to be received.
enum { WAITING_MAX = 64, MESSAGE_WORDS = 6 };
struct message {
    bool is_sent;
    uint64_t hidden_words[MESSAGE_WORDS];  // the arguments
};
static _Thread_local struct waiting {
    unsigned count;
    struct message messages[WAITING_MAX];
} *waiting;  // until the group ends

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
// A rank that sends to itself receives in the same group (NCCL, "Point-to-point communication").
FUNCTION(ncclGroupEnd)(void) {
    if (!groups) return INVALID_USAGE;
    groups--;
    if (groups || !waiting) return 0;
    bool is_whole = !waiting->count;
    free(waiting);
    waiting = NULL;
    return is_whole ? 0 : INVALID_USAGE;
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

// -- what computes ---------------------------------------------------------------------------------------------------

// Whether a communicator has one rank. If not, or if there is none: *answer is what the call answers.
static bool is_alone(const char *name, uint64_t handle, int *answer) {
    struct library_object *object = object_of_call(name, &NCCL, handle, answer);
    if (!object) return false;
    bool is_one = object->values[RANKS] == 1;
    if (!is_one) unsimulated(name, "for more than one rank: ask for one");
    *answer = object_leave(&NCCL, is_one ? OK : NOT_SUPPORTED);
    return is_one;
}

static int collective(const char *name, uint64_t handle, uint64_t stream, const uint64_t *words, const double *floats) {
    int answer;
    return is_alone(name, handle, &answer) ? library_compute(name, &NCCL, handle, &stream, words, floats) : answer;
}

static int run_collective(const struct computed *function, const uint64_t *words, const double *floats) {
    return collective(function->name, words[function->handle], words[function->stream], words, floats);
}

#define COLLECTIVE(name, communicator, stream) COMPUTES_BY(run_collective, NCCL, communicator, stream, name)
COLLECTIVE(ncclAllReduce, 5, 6)
COLLECTIVE(ncclReduce, 6, 7)
COLLECTIVE(ncclBroadcast, 5, 6)
COLLECTIVE(ncclBcast, 4, 5)
COLLECTIVE(ncclAllGather, 4, 5)
COLLECTIVE(ncclReduceScatter, 5, 6)
COLLECTIVE(ncclAlltoAll, 4, 5)
COLLECTIVE(ncclGather, 5, 6)
COLLECTIVE(ncclScatter, 5, 6)

static int exchange(const uint64_t *sent, const uint64_t *received) {
    enum { ADDRESS, COMMUNICATOR = 4, STREAM };
    static const double NO_FLOATS[HOSTED_FLOATS];
    uint64_t handle = sent[COMMUNICATOR];
    if (sent[STREAM] != received[STREAM]) {
        int answer;
        if (!object_of_call("ncclRecv", &NCCL, handle, &answer)) return answer;
        return object_leave(&NCCL, unsimulated("ncclRecv", "from another stream of the same rank"));
    }
    int status = collective("ncclSend", handle, sent[STREAM], sent, NO_FLOATS);
    struct library_object *object = object_find(&NCCL, handle);
    if (status || !object) return status;
    object->values[SENT] = (int64_t)sent[ADDRESS];
    status = collective("ncclRecv", handle, received[STREAM], received, NO_FLOATS);
    object = object_find(&NCCL, handle);
    if (object) object->values[SENT] = 0;
    return status;
}

// The first message of the other kind, of the same communicator, is the other side.
static int pass(bool is_sent, const uint64_t *words) {
    enum { COMMUNICATOR = 4 };
    int answer;
    if (!is_alone(is_sent ? "ncclSend" : "ncclRecv", words[COMMUNICATOR], &answer)) return answer;
    if (!groups) return INVALID_USAGE;
    if (!waiting) waiting = calloc(1, sizeof *waiting);
    if (!waiting) return NCCL.no_memory;
    for (unsigned i = 0; i < waiting->count; i++) {
        const struct message *each = &waiting->messages[i];
        if (each->is_sent == is_sent || HIDDEN(each->hidden_words[COMMUNICATOR]) != words[COMMUNICATOR]) continue;
        uint64_t other[HOSTED_WORDS] = {0};
        for (unsigned at = 0; at < MESSAGE_WORDS; at++) other[at] = HIDDEN(each->hidden_words[at]);
        waiting->count--;
        memmove(&waiting->messages[i], each + 1, (waiting->count - i) * sizeof *each);
        return is_sent ? exchange(words, other) : exchange(other, words);
    }
    if (waiting->count == WAITING_MAX) return NCCL.unsupported;
    struct message *message = &waiting->messages[waiting->count++];
    message->is_sent = is_sent;
    for (unsigned at = 0; at < MESSAGE_WORDS; at++) message->hidden_words[at] = HIDDEN(words[at]);
    return 0;
}

EXPORT int COMPUTED(ncclSend)(const void *from, size_t count, int type, int peer, void *handle, void *stream) {
    return pass(true, (const uint64_t[HOSTED_WORDS]){(uint64_t)from, count, (uint64_t)type, (uint64_t)peer,
                                                     (uint64_t)handle, (uint64_t)stream});
}
EXPORT int COMPUTED(ncclRecv)(void *to, size_t count, int type, int peer, void *handle, void *stream) {
    return pass(false, (const uint64_t[HOSTED_WORDS]){(uint64_t)to, count, (uint64_t)type, (uint64_t)peer,
                                                      (uint64_t)handle, (uint64_t)stream});
}

// -- operations of a client's own ------------------------------------------------------------------------------------

// "ncclScalarHostImmediate: the scalar … is dereferenced before" this returns.
EXPORT int COMPUTED(ncclRedOpCreatePreMulSum)(int *operation, const void *factor, int type, int residence,
                                              void *handle) {
    enum { HOST_IMMEDIATE = 1, TYPES = 10 };
    static const unsigned char BYTES_OF[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    static const char NAME[] = "ncclRedOpCreatePreMulSum";
    int answer;
    struct library_object *object = object_of_call(NAME, &NCCL, (uint64_t)handle, &answer);
    if (!object) return answer;
    if (!operation || !factor || type < 0 || type >= TYPES) return object_leave(&NCCL, INVALID_VALUE);
    if (residence != HOST_IMMEDIATE)
        return object_leave(&NCCL, unsimulated(NAME, "for a factor in a device's memory: give one of the host's"));
    for (int i = 0; i < OPERATIONS_MAX; i++) {
        int64_t *values = &object->values[OPERATIONS + 2 * i];
        if (*values) continue;
        values[0] = type + 1;
        values[1] = 0;
        memcpy(&values[1], factor, BYTES_OF[type]);
        *operation = OPERATION_FIRST + i;
        return object_leave(&NCCL, OK);
    }
    return object_leave(&NCCL, unsimulated(NAME, "for so many operations at once"));
}

EXPORT int COMPUTED(ncclRedOpDestroy)(int operation, void *handle) {
    int answer, number = operation - OPERATION_FIRST;
    struct library_object *object = object_of_call("ncclRedOpDestroy", &NCCL, (uint64_t)handle, &answer);
    if (!object) return answer;
    bool is_one = number >= 0 && number < OPERATIONS_MAX && object->values[OPERATIONS + 2 * number];
    if (is_one) object->values[OPERATIONS + 2 * number] = 0;
    return object_leave(&NCCL, is_one ? OK : INVALID_VALUE);
}

// -- more communicators, and memory that others may read -------------------------------------------------------------

// "The color … NCCL_SPLIT_NOCOLOR … the resulting communicator is NULL" (ncclCommSplit).
FUNCTION(ncclCommSplit)(void *handle, int color, int key, void **made, void *config) {
    int answer;
    (void)key, (void)config;
    struct library_object *object = object_of_call("ncclCommSplit", &NCCL, (uint64_t)handle, &answer);
    if (!object) return answer;
    enum status status = made ? OK : INVALID_VALUE;
    if (made) *made = NULL;
    if (!status && object->values[RANKS] > 1)
        status = unsimulated("ncclCommSplit", "for more than one rank: ask for one");
    if (!status && color >= 0) status = make(0, 1, made);
    return object_leave(&NCCL, status);
}

FUNCTION(ncclCommRegister)(void *handle, void *buffer, size_t bytes, void **registration) {
    int answer;
    struct library_object *object = object_of_call("ncclCommRegister", &NCCL, (uint64_t)handle, &answer);
    if (!object) return answer;
    enum status status = registration ? memory_check((uint64_t)buffer, bytes) : INVALID_VALUE;
    if (!status) *registration = buffer;
    return object_leave(&NCCL, status);
}
FUNCTION(ncclCommDeregister)(void *handle, void *registration) {
    int answer;
    (void)registration;
    struct library_object *object = object_of_call("ncclCommDeregister", &NCCL, (uint64_t)handle, &answer);
    return object ? object_leave(&NCCL, OK) : answer;
}
