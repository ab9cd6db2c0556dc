// What is known of wrong accesses beside their observations in the ledger: a file next to it, with a line for each.
// Tabs separate its fields: how often it happened, the number of the launch's observation, the test that launched the
// kernel (or nothing), the kernel, the block, the thread, the place in the source (FILE:LINE, or nothing), the place
// that it is inlined at (the same), the line of the PTX, and the instruction there. Of an access that meets another
// one, the other's block, its thread, whether it writes, its places, line and instruction follow; else nothing stands
// in these fields. Then come the names of two arrays in shared memory, or nothing. The last two are the numbers of the
// lines of this log that say who allocated the block of a heap that is missed, and who freed it; or nothing
// (quiesce.simulator.runtime.kernel_logs). Such lines have no observation.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct logged_place {
    const char *file, *caller, *instruction;  // NULL: not known
    uint32_t line, caller_line, ptx_line;
};

struct logged_access {
    uint64_t launch;
    const char *test, *kernel;  // NULL: not known
    uint32_t block[3], thread[3];
    struct logged_place place;
    bool has_other, other_writes;
    uint32_t other_block[3], other_thread[3];
    struct logged_place other;
    const char *arrays[2];  // of shared memory: that it has to stay in, and that it uses; NULL: none
    uint64_t made, freed;  // lines; UINT64_MAX: none
};

// Writes a line. Returns where its count is, or -1.
int64_t access_log_add(const struct logged_access *access);
void access_log_count(int64_t place, uint64_t count);
