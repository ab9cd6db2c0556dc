// Accesses that are wrong: each is observed the first time, and counted.
#pragma once

#include <stdbool.h>

#include "kernels/abi.h"
#include "ledger/ledger.h"

// The launch that runs: what is said of its accesses.
struct checked_launch {
    const char *kernel;
    unsigned device;
    uint32_t parameter_bytes, frame_bytes;
    const struct kernel_site *sites;  // NULL: nothing is checked
    const char *const *site_texts;
    const struct kernel_file *files;
    uint32_t stack;  // of who launched it
    uint16_t function;
    uint64_t stream;   // its serial
    uint64_t number;   // of its observation
    const char *test;  // that launched it; NULL: none
};

enum { NO_SITE = 0x7fffffff };  // of what no instruction did

struct wrong_access {
    enum seen seen;
    uint64_t address;  // in shared memory, where it was named there
    unsigned bytes;
    bool writes;
    uint32_t site, thread;  // of a block of `threads`
    uint32_t block[3], threads[3];
    uint32_t shared_bytes;
    uint32_t other_thread;  // of a race
    int32_t row;  // in a surface; and how long its rows are
    uint32_t surface_bytes;
};

void wrong_access_see(const struct checked_launch *launch, const struct wrong_access *wrong);

// Whether an address lies within a page of a block; and whether it is one of the bytes before one that keep it apart.
bool wrong_access_is_near_a_block(uint64_t address);
bool wrong_access_is_just_before_a_block(uint64_t address);

void wrong_accesses_tell(void);  // how many there were up to now
void wrong_accesses_close(void);
