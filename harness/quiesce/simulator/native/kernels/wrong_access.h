// Accesses that are wrong: each is observed the first time, and counted.
#pragma once

#include <stdbool.h>

#include "kernels/abi.h"
#include "ledger/ledger.h"

// Where the instructions of a kernel are that use memory.
struct code_places {
    const struct kernel_site *sites;  // NULL: nothing is checked
    const char *const *site_texts;
    const struct kernel_file *files;
    const struct kernel_array *arrays;
};

extern struct code_places running_code;  // of the kernel that runs

// The launch that runs: what is said of its accesses.
struct checked_launch {
    const char *kernel;
    unsigned device;
    uint32_t parameter_bytes, frame_bytes;
    struct code_places code;
    uint32_t stack;  // of who launched it
    uint16_t function;
    uint64_t stream;   // its serial
    uint64_t number;   // of its observation
    const char *test;  // that launched it; NULL: none
};

// What another thread did that makes an access wrong; or nothing.
struct other_access {
    bool is_there, writes;
    uint32_t block[3], thread[3], site;  // block: of a race of blocks
    struct code_places code;
};

// Why a lane does not take part in a shuffle: the size of such an observation.
enum absence { NOT_IN_MASK, HAS_ENDED, NO_THREAD };

// A call of malloc or free by a thread of a kernel.
struct heap_use {
    const char *kernel;  // NULL: there was none
    const char *test;    // that launched it; NULL: none
    uint64_t launch;     // the number of its observation
    struct code_places code;
    uint32_t site, block[3], thread[3];
};

struct wrong_access {
    enum seen seen;
    uint64_t address;  // in shared memory, where it was named there
    unsigned bytes;
    bool writes, is_partly;  // is_partly: of what nobody has written some bytes were
    bool is_of_null;  // at an index of a null pointer
    uint32_t site, thread;  // of a block of `threads`
    uint32_t block[3], threads[3];
    uint32_t shared_bytes;
    struct other_access other;
    const struct heap_use *made, *freed;  // of the block of a heap that it misses; NULL: not known
    struct {
        uint64_t start, bytes;
    } missed;  // memory that is no block of the ledger; or nothing
    int32_t row;  // in a surface; and how long its rows are
    uint32_t surface_bytes;
};

// Where threads wait that can't go on: one of them, and another one at another place or of another block.
struct waiting {
    bool is_for_memory;  // else at barriers, or for threads of their warp
    uint64_t address;    // that they look at; 0: not known
    uint32_t bytes, threads[3];
    struct waiting_place {
        bool is_there;
        uint32_t block[3], thread, site;
    } places[2];
};

// FILE:LINE, or the instruction and its line in the PTX. Returns `to`, which is empty where nothing is known.
enum { PLACE_WORDS_BYTES = 1024 };
const char *place_in_words(const struct code_places *code, uint32_t site, char to[PLACE_WORDS_BYTES]);

// The index of a thread in a block of `threads`, of its number.
void thread_index(uint32_t number, const uint32_t threads[3], uint32_t index[3]);

// The array of shared memory that an instruction of the kernel that runs has to stay in; NULL: none is known.
const struct kernel_array *wrong_access_array(uint32_t site);

// A mistake that was made so many times, of which this is the first.
void wrong_access_see(const struct checked_launch *launch, const struct wrong_access *wrong, uint64_t times);

// Writes a call of malloc to the log, once for each instruction that launches from one place come to. Returns the
// number of its line, or UINT64_MAX.
uint64_t wrong_access_note_use(const struct heap_use *use, uint32_t stack);

// Whether an address lies within a page of a block; and whether it is one of the bytes before one that keep it apart.
bool wrong_access_is_near_a_block(uint64_t address);
bool wrong_access_is_just_before_a_block(uint64_t address);

void wrong_accesses_tell(void);  // how many there were up to now
void wrong_accesses_close(void);
