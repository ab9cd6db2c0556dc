// What a run leaves behind: a live table, which decides leaks, and a ring of observations, in one mapped file. What the
// ring has no more room for is written to a second file (saved.c).
//
// The kernel keeps the file's pages when the process dies, however it dies. ledger.py reads the same layout; a test
// compares the two. An entry of the live table counts while its serial is not 0, which is written last and cleared
// first; an observation counts once `ring_count` includes it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/call_kinds.h"

enum { LEDGER_LAYOUT = 14, NAME_ENTRIES = 1024, LEDGER_NAME_BYTES = 64, KEPT_ENTRIES = 4096, LEDGER_PART = 4096 };

enum thing {
    THING_NONE,
    THING_DEVICE,
    THING_PINNED,
    THING_MANAGED,
    THING_REGISTERED,
    THING_STREAM,
    THING_EVENT,
    THING_GRAPH,
    THING_GRAPH_EXEC,
    THING_POOL,
    THING_MODULE,
    THING_TEXTURE,  // or a surface
    THING_PHYSICAL,     // memory, behind a handle
    THING_RESERVATION,  // of address space
    THING_LINKER,
    THING_USER_OBJECT,  // of which the client owns references
    THING_BLAS_HANDLE,  // these are of libraries: cuBLAS, cuSPARSE, cuSOLVER, cuFFT, cuRAND, cuDNN, NCCL and ROCm's
    THING_SPARSE_HANDLE,
    THING_SOLVER_HANDLE,
    THING_FFT_PLAN,
    THING_GENERATOR,
    THING_DNN_HANDLE,
    THING_COMMUNICATOR,
    THING_CONTEXT,  // created, or a primary one that was retained
    THING_HEAP,  // memory that a kernel allocated with malloc
    THING_IMPORTED,  // memory of another process that was opened
    THINGS,
};

enum seen {
    SEEN_NOTHING,
    SEEN_ALLOCATED,       // thing, device, address, size
    SEEN_FREED,           // thing, device, address, size
    SEEN_REFUSED,         // thing, device, size; object: the answer, address: bytes free then, other: bytes that pools
                          // of the device had cached, other_bytes: bytes in use, those included; flags: FLAG_INJECTED
    SEEN_READ,            // stream reads address, size
    SEEN_WRITTEN,         // stream writes address, size
    SEEN_COPIED,          // stream copies size bytes from other to address
    SEEN_LAUNCHED,        // stream
    SEEN_RECORDED,        // object is an event, stream
    SEEN_STREAM_WAITED,   // stream waits for object, an event; flags: FLAG_STREAM_DEAD
    SEEN_EVENT_WAITED,    // the host waited for object; flags: FLAG_STREAM_DEAD
    SEEN_EVENT_COMPLETE,  // a query of object said yes
    SEEN_STREAM_COMPLETE, // a query of stream said yes
    SEEN_STREAM_WAITED_FOR,  // the host waited for stream
    SEEN_DEVICE_WAITED_FOR,  // the host waited for device
    SEEN_CREATED,         // thing, object; stream: flags (nonblocking)
    SEEN_DESTROYED,       // thing, object
    SEEN_HOST_WAITED_WORK,   // the host learned that the work of stream is complete, and nothing else
    SEEN_FREED_TWICE,     // address
    SEEN_FREED_FOREIGN,   // address: nothing was ever allocated there by this call's family. Of memory of a heap,
                          // object: the line of the log of accesses that says who allocated it
    SEEN_USED_AFTER_FREE, // address, size
    SEEN_OUT_OF_BOUNDS,   // address, size; other: end of the block
    SEEN_DAMAGED,         // address, size: the red zone behind the block changed
    SEEN_NOT_SIMULATED,   // function
    SEEN_STAGED_AGAIN,    // address: the pinned copy, other: the pinned original, size
    SEEN_MARK,            // function: the mark's name; live then: address blocks, size bytes, other handles
    SEEN_DEAD_HANDLE,     // thing, address: the handle; it was destroyed
    SEEN_CONTEXT_BROKEN,  // device; other: the error that makes it unusable
    SEEN_STREAM_WAITED_VALUE,  // stream waits until memory at address has a value, whoever writes it
    // An access of a kernel is wrong. function, stack, stream: of the launch; address, size; other, other_bytes: the
    // block that it misses; object: a line of the log of accesses (kernels/access_log.h); flags: FLAG_WRITES.
    SEEN_KERNEL_OUT_OF_BOUNDS,
    SEEN_KERNEL_USED_FREED,
    SEEN_KERNEL_MISALIGNED,
    SEEN_KERNEL_READ_UNWRITTEN,
    SEEN_KERNEL_OUTSIDE_SHARED,  // other_bytes: how much shared memory a block has
    SEEN_KERNEL_OUTSIDE_LOCAL,   // other, other_bytes: the array that it just misses, if that is known
    SEEN_KERNEL_NO_MEMORY,     // no memory of a device is there
    SEEN_KERNEL_OTHER_DEVICE,  // the memory is that of a device to which this one has no access
    SEEN_KERNEL_READ_ONLY,     // a write to memory that may only be read
    SEEN_KERNEL_RACE_IN_SHARED,  // with a thread of another warp; the log of accesses names both
    SEEN_KERNEL_WAITS_FOR_EVER,  // threads of a block wait for each other
    SEEN_KERNEL_NO_TEXTURE,      // address: what was passed for the handle of a texture or surface
    SEEN_KERNEL_OUTSIDE_SURFACE, // address: the byte of the row, other: the row; other_bytes: how long rows are
    // Its results depend on the order in which its blocks and threads run. address: the first byte of them, size: how
    // many there are.
    SEEN_KERNEL_DEPENDS_ON_ORDER,
    SEEN_KERNEL_RACE_IN_WARP,  // in shared memory, with another lane of the warp; the log of accesses names both
    SEEN_KERNEL_USED_UNCOPIED,  // shared memory that an asynchronous copy may still write; the log of accesses has both
    SEEN_KERNEL_OUTSIDE_HEAP,   // other, other_bytes: the block of the device's heap; the log has who made it
    SEEN_KERNEL_FREED_IN_HEAP,  // the same
    SEEN_KERNEL_OTHERS_LOCAL,   // the log of accesses has whose local memory it is
    SEEN_KERNEL_BARRIERS_DIFFER,  // threads of a warp wait at different ones; the log of accesses has both
    // Races in memory of a device; the log of accesses has both. other, other_bytes: the block of memory
    SEEN_KERNEL_RACE_OF_BLOCKS,
    SEEN_KERNEL_MEMORY_RACE_IN_BLOCK,  // with a thread of another warp
    SEEN_KERNEL_MEMORY_RACE_IN_WARP,
    SEEN_KERNEL_OUTSIDE_ARRAY,    // of shared memory, in another array. other, other_bytes: where its own one lies
    SEEN_KERNEL_SHUFFLES_ABSENT,  // address: the lane that takes no part; size: why (wrong_access.h)
    SEEN_KERNEL_SHARED_UNWRITTEN,  // a read of shared memory
    SEEN_KERNEL_WARP_LEFT,  // a thread waits at a barrier, and one of its warp has ended; the log of accesses has both
    // A copy to the host reads memory that nobody has written. address: the first byte of it, size: how many there are;
    // other, other_bytes: the block; object: the copy's observation; function, stack: of the copy; flags: FLAG_STRICT
    SEEN_COPIED_UNWRITTEN,
    // A copy has addresses that are not where its direction says. address, other, size: as of SEEN_COPIED; object: the
    // direction (as in cudaMemcpyKind), and where source and target are, in a byte each (pageable, pinned, device,
    // managed memory); flags: FLAG_STRICT where it is done all the same
    SEEN_COPY_MISDIRECTED,
    // A kernel frees what it may not. other, other_bytes: the block that the address lies in; the log has who made it
    SEEN_KERNEL_FREED_TWICE,
    SEEN_KERNEL_FREED_FOREIGN,
    SEEN_KERNEL_STACK_OVERFLOW,  // other_bytes: how much stack each thread has
    SEEN_KERNEL_LOOKS_FOR_EVER,  // threads wait for memory to change, and none is left that changes it
    SEEN_HOST_READ,    // the host reads memory at address, which work used that it may not have waited for; of work
                       // enqueued after so many observations as object says it may be in order with that work
    SEEN_HOST_WROTE,   // the same of a write
    SEEN_HOST_UNSEEN,  // from here on such accesses are not seen: the program handles SIGSEGV itself
    // Memory and events of other processes (memory/shared_table.h). object: the exporter's serial.
    SEEN_EXPORTED,          // thing, device, address, size: others may open it
    SEEN_FREED_WHILE_OPEN,  // thing, address, size; other: a process that has it open
    SEEN_IMPORTED,          // thing, address: the exporter's serial, other: its process; object: the serial here
    SEEN_TICK,  // object: which call it is of those of all processes that share; 0: that is not known
    SEEN_EXPORTER_FREED,    // thing, address, size; other: the process that exported it, and has freed it or has ended
    SEEN_BRANCH_BEGAN,  // stream: a branch of a launch of a graph; the one of the launch before has ended
    SEEN_NODE_RAN,  // function, stack: of the call that added the node of a graph that the next observation is about
};

enum {
    FLAG_STREAM_DEAD = 1,  // the stream that the event was last recorded on was destroyed
    FLAG_NONBLOCKING = 2,  // a stream that has no part in the legacy default stream's order
    FLAG_ORDERED = 4,      // an allocation or free that is ordered on `stream`, as cudaMallocAsync's are
    FLAG_STAGED = 8,       // the source of a copy was read before the call returned
    FLAG_CAPTURED = 16,    // a record or wait that became part of a graph and orders nothing else
    FLAG_INJECTED = 32,    // a refusal that was asked for
    FLAG_WRITES = 64,      // an access that writes, also one that reads as well
    FLAG_OF_NULL = 128,    // an access at an index of a null pointer
    FLAG_PARTLY = 256,     // an access to bytes of which only some were never written
    FLAG_STRICT = 512,     // a mistake for those alone who ask to be told of all
    FLAG_OF_GRAPH = 1024,  // within a launch of a graph with branches: `stream` is one; an event with the thing of an
                           // executable graph is a mark between two
};

// Files of a process for which there was no room on the disk.
enum full {
    FULL_LEDGER = 1,  // this one: what came after that moment is not in it
    FULL_STACKS = 2,
    FULL_TOUCHED = 4,
    FULL_FAILED = 8,
    FULL_ACCESSES = 16,
    FULL_OTHERS = 32,  // refused calls, kernels that did not compute
};

struct live {
    uint64_t serial;  // counts everything ever made, from 1; 0: this entry is free
    uint64_t address; // or the handle
    uint64_t size_bytes;
    // Of a context: how often threads have it current. Of memory of a heap: the line of the log of accesses that says
    // who allocated it, or UINT64_MAX.
    uint64_t stream;
    uint64_t observation; // how many observations there were when it was made; of memory of a heap, at the launch
    uint32_t thread;
    uint16_t device;
    uint16_t function; // index into the names: the call that made it
    uint8_t thing;
    uint8_t reachable; // at exit: whether somebody can still give it back, an enum reach
    uint8_t part;      // of a module or of a handle: it goes with that, and nobody else gives it back
    uint8_t context;   // its number (order/driver_context.h)
    uint32_t stack;  // of the call that made it, see stacks.h; 0: none was kept
    uint8_t reserved_too[8];
};

struct observation {
    uint8_t seen;
    uint8_t thing;
    uint16_t device;
    uint32_t thread;
    uint16_t function; // index into the names: the call that was under way
    uint16_t flags;
    uint32_t stack;  // of the call that was under way; 0: none was kept
    uint64_t stream; // serial of the stream; 0: the default stream of `device`
    uint64_t object; // serial of what the observation is about
    uint64_t address;
    uint64_t other;
    uint64_t size_bytes;
    uint64_t other_bytes;  // of a copy: how far its source reaches
};

struct ledger_header {
    uint64_t magic;
    uint32_t layout, process, parent, flavour, version, devices;
    uint64_t capacity_bytes;
    uint64_t live_offset, live_entries, live_high;  // entries at and above live_high were never used
    uint64_t ring_offset, ring_entries, ring_count; // ring_count: observations made, also those overwritten
    uint64_t names_offset, names_count;
    uint64_t exited; // 1: the process ran its exit handlers
    uint64_t launches;
    uint64_t made; // things ever made: the last serial
    uint64_t kept_offset, kept_entries, kept_count;  // kept_count: also those that found no room
    uint64_t computed;  // launches of kernels that compute
    uint64_t checked;   // of these, those whose accesses are judged
    uint64_t saved;     // observations before this number were overwritten; they were saved, or lost
    uint64_t lost;      // of these, the first that were not saved
    uint64_t full;      // what found no room on the disk, of enum full
    struct {
        uint64_t count, bytes;
    } live[THINGS];
    struct {
        uint64_t calls, failed;  // failed: as the run asked for
    } met[CALL_KINDS];
};

// An observation that stays when the ring has overwritten it.
struct kept {
    uint64_t number;  // among all observations
    struct observation observation;
};

extern struct ledger_header *ledger;

// Serials for what is nobody's to give back: the first of so many, one behind another.
uint64_t ledger_serials(uint64_t count);

// Opens a new ledger, in `folder` or (empty) in memory that nobody else sees. Of older observations than the ring has,
// up to `saved_bytes` are kept on disk. Returns false and sets errno.
bool ledger_open(const char *folder, uint64_t ring_entries, uint64_t saved_bytes);
void ledger_close(void);
void ledger_discard(void);  // as if it had never been opened
void ledger_miss(enum full file);  // the disk has no room for what is to be written there
const char *ledger_stem(void);  // of its path, for what lies beside it; empty where it has none

// The function that a call is under way in; observations and live entries carry it.
void ledger_enter(const char *function);
const char *ledger_entered(void);
uint16_t ledger_function(void);
uint32_t ledger_thread(void);

uint32_t ledger_take(void);  // an index of the live table that is not used, or 0 where it is full
void ledger_remove(uint32_t index);
void ledger_resize(uint32_t index, uint64_t size_bytes);
struct live *ledger_live(uint32_t index);

// Whether a copy of the process that is made now has the ledger too, and writes to the same one.
void ledger_share(bool share);
void ledger_range(void (*add)(const void *start, size_t bytes));

// Where the ring is written, part by part. A pair is a block that the very next observation freed.
extern struct ledger_place {
    struct observation *begin, *next, *end;  // of the part
    uint64_t pairs;
    struct observation *largest;  // the free of the largest pair
} ledger_place;

// A part of the ring, of LEDGER_PART observations at most, with what they were counted for.
struct ledger_part {
    struct observation *begin;
    uint64_t length, pairs;
    struct observation *largest;  // the free of the largest pair; NULL: there is none
};

// Takes up to `bytes` of disk from now on, in a file of this stem; none where the stem is empty.
void saved_open(const char *stem, uint64_t bytes);
void saved_stop(void);  // what is there stays

// Saves a part whose first observation has this number. Returns false where that can't be, now or ever again: the limit
// is reached, or the disk is full.
bool saved_add(const struct ledger_part *part, uint64_t number);

void ledger_next_part(void);  // the part is full
void ledger_pair(void);       // the last two observations are a pair, in one part

static inline bool ledger_is_pair(const struct observation *made, const struct observation *freed) {
    return freed->seen == SEEN_FREED && made->seen == SEEN_ALLOCATED && made->address == freed->address &&
           !((made->flags | freed->flags) & FLAG_ORDERED);
}

// These two are inline because the caller's structure then goes from registers to its place. Built in memory and
// copied, it is read in wider parts than it was written in, for which a processor waits until all of them have arrived.

// Adds to the live table; returns the index of the entry, or 0 where the table is full.
static inline uint32_t ledger_add(struct live entry) {
    uint32_t index = ledger_take();
    if (!index) return 0;
    struct live *place = ledger_live(index);
    *place = (struct live){.address = entry.address,
                           .size_bytes = entry.size_bytes,
                           .stream = entry.stream,
                           .observation = ledger->ring_count,
                           .thread = ledger_thread(),
                           .device = entry.device,
                           .context = entry.context,
                           .function = ledger_function(),
                           .thing = entry.thing};
    __atomic_store_n(&place->serial, ++ledger->made, __ATOMIC_RELEASE);
    ledger->live[entry.thing].count++;
    ledger->live[entry.thing].bytes += entry.size_bytes;
    return index;
}

static inline void ledger_see(struct observation observation) {
    observation.thread = ledger_thread();
    if (!observation.function) observation.function = ledger_function();
    if (ledger_place.next == ledger_place.end) ledger_next_part();
    struct observation *place = ledger_place.next++;
    *place = observation;
    __atomic_store_n(&ledger->ring_count, ledger->ring_count + 1, __ATOMIC_RELEASE);
    if (observation.seen == SEEN_FREED && place != ledger_place.begin && ledger_is_pair(place - 1, place))
        ledger_pair();
}

// The same for what a program did wrong: the first of these observations stay, however many others come after them.
void ledger_see_wrong(struct observation observation);

// What is wrong from now on is so of a node of a graph, by the call that added it; 0, 0: no longer.
void ledger_on_behalf(uint32_t stack, uint16_t function);

// Returns the index of a name, which is kept in the ledger; a name that does not fit is cut.
uint16_t ledger_name(const char *name);
