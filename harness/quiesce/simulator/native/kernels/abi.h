// What compiled kernels and the runtime agree on. kernels.translation has the same layouts and numbers.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { KERNEL_ABI = 14, WARP_THREADS = 32, BLOCK_THREADS_MAX = 1024, BARRIERS = 16 };
enum { SHARED_BYTES_MAX = 232448 };  // of a block, on any device of today

enum { GRID_WORKSPACE_BYTES = 12 };

// What every thread of a block sees; the code only reads it.
struct kernel_context {
    uint32_t grid[3], block[3], block_index[3];
    uint32_t dynamic_shared_bytes;
    uint64_t shared_base;  // the address of the block's shared memory
    uint64_t parameters;   // in the order of the kernel's, each aligned as PTX has it
    uint32_t shared_bytes;
    uint32_t block_turn;  // another number for each block that runs
    void *checks;
    struct run *runtime;
    uint64_t grid_workspace;  // of a cooperative launch: words by which device code waits for other blocks; or 0
    void *frames;   // where registers of the block's threads are kept while they wait; the first array has their states
    void *touched;  // see kernels/touched.h
    void *shared_words;  // see kernels/shared_words.h
};

// A thread of a kernel whose threads wait for each other: where it goes on, and what it waits for. Its frame follows.
struct kernel_thread {
    uint32_t state, index[3], lane, warp, operation, mask;
    uint64_t value;
    uint32_t operand_b, operand_c;
    uint64_t result;
    uint32_t predicate, status;
};

_Static_assert(offsetof(struct kernel_context, frames) == 88, "the context as compiled code knows it");
_Static_assert(offsetof(struct kernel_context, touched) == 96, "the context as compiled code knows it");
_Static_assert(offsetof(struct kernel_context, shared_words) == 104, "the context as compiled code knows it");
_Static_assert(sizeof(struct kernel_thread) == 64, "a frame begins at byte 64");

// How far the threads of a block lie from each other.
static inline uint64_t kernel_thread_bytes(uint32_t frame_bytes) {
    enum { ALIGNMENT = 64 };
    return (sizeof(struct kernel_thread) + frame_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// Numbers that the code states of itself (quiesce_kernel_info).
struct kernel_info {
    uint32_t abi, suspends, frame_bytes, parameter_bytes, parameter_count, static_shared_bytes, local_bytes;
    uint32_t site_count, variable_count, array_bytes, state_count;
    uint32_t threads_max;  // of a block, by its launch bounds; 0: there are none
    uint32_t declared_shared_bytes, constant_bytes;  // what clients are told
    uint32_t rows_after;  // from so many threads on another form of it, for rows of threads, is worth its compilation;
                          // 0: there is none, or this is it
    uint32_t by_warps;    // whether threads that run together go instruction by instruction, and not one by one
};

// A state that a thread may be in, from 1 on: what it waits for there, and at which barrier if all threads of the block
// do; -1: at none.
struct kernel_state {
    uint32_t operation;
    int32_t barrier;
};

struct kernel_parameter {
    uint32_t offset, bytes;
};

enum { NO_SITE = 0x7fffffff };  // of what no instruction did

struct kernel_site {
    uint32_t line, file, source_line;   // of the PTX; of the source, by `.loc`
    uint32_t caller_file, caller_line;  // that it is inlined at; 0: it is not
    uint32_t array;                     // of shared memory that it has to stay in, from 1 on; 0: none is known
};

// An array of shared memory that instructions begin at.
struct kernel_array {
    const char *name;  // NULL: there are no more
    uint32_t offset, bytes;
};

// What the threads of a block use of memory in one instruction, where their addresses grow evenly with their index.
struct kernel_range {
    uint64_t address;              // of the first thread
    int64_t steps[3];              // from one thread to the next, on each axis
    uint32_t first[3], counts[3];  // threads of the block
    uint32_t access, site;         // as of an access by itself (checks.h)
};

_Static_assert(sizeof(struct kernel_range) == 64, "a range as compiled code writes it");

struct kernel_file {
    uint64_t number;
    const char *name;  // NULL: there are no more
};

struct kernel_variable {
    const char *name;
    uint64_t *address;  // where the code wants to have the variable's address
};

// What a thread that suspends waits for. Up to OPERATION_ARRIVE they are of a barrier, the others of a warp.
enum kernel_operation {
    OPERATION_SYNC = 1,
    OPERATION_RED_POPC,
    OPERATION_RED_AND,
    OPERATION_RED_OR,
    OPERATION_ARRIVE,
    OPERATION_SHFL_UP = 10,
    OPERATION_SHFL_DOWN,
    OPERATION_SHFL_BFLY,
    OPERATION_SHFL_IDX,
    OPERATION_VOTE_ANY = 20,
    OPERATION_VOTE_ALL,
    OPERATION_VOTE_UNI,
    OPERATION_VOTE_BALLOT,
    OPERATION_MATCH_ANY = 30,
    OPERATION_MATCH_ALL,
    OPERATION_REDUX_ADD = 40,
    OPERATION_REDUX_MIN,
    OPERATION_REDUX_MAX,
    OPERATION_REDUX_AND,
    OPERATION_REDUX_OR,
    OPERATION_REDUX_XOR,
    OPERATION_REDUX_SIGNED_MIN = 50,
    OPERATION_REDUX_SIGNED_MAX,
    OPERATION_WARP_SYNC = 60,
    OPERATION_ACTIVE_MASK,
    OPERATION_YIELD = 70,
    OPERATION_STEP,
    OPERATION_LOAD_MATRIX = 80,
    OPERATION_STORE_MATRIX,
    OPERATION_MULTIPLY_MATRICES,
};

// What a block or a thread returns when a kernel ends before its time.
enum kernel_end {
    ENDED_BY_TRAP = -1,
    ENDED_BY_ASSERT = -2,
    ENDED_WAITING = -100,
    ENDED_CROWDED = -104,
    ENDED_BY_CALLS = -105,
    ENDED_BY_STACK = -106,
    ENDED_BY_TIME = -107,
    ENDED_AWAITING = -108,
    ENDED_BY_USER = -101,
    ENDED_BY_ADDRESS = -102,
    ENDED_BY_FREE = -103,
    ENDED_BY_ACCESS = -110,
    ENDED_MISALIGNED = -111,
    ENDED_BY_HOST = -112,
};

typedef int run_block(struct kernel_context *context);
typedef int run_thread(struct kernel_context *context, struct kernel_thread *thread);
typedef int run_together(struct kernel_context *context, void *frames, uint32_t from);
