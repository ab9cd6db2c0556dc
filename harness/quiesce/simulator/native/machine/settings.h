// What a run asked for. The launcher writes it into one environment variable, as name=value;name=value.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum flavour { FLAVOUR_CUDA, FLAVOUR_HIP };
enum schedule {
    SCHEDULE_EAGER,   // work runs as soon as nothing holds it back
    SCHEDULE_LAZY,    // work runs when somebody waits for it: the longest legal delay
    SCHEDULE_SEEDED,  // work runs at moments, and in an order between streams, that a seed decides
};
enum recycle {
    RECYCLE_EAGER,  // an address or a handle is used again as soon as it is free
    RECYCLE_LATE,   // an address once many others were freed after it; a handle at once
    RECYCLE_NEVER,
};

enum { DEVICES_MAX = 8, FOLDER_BYTES = 512, FAIL_BYTES = 256 };

struct settings {
    char folder[FOLDER_BYTES];  // where ledgers go; empty: nothing is kept
    char fail[FAIL_BYTES];      // failures to arm, see failure.h
    enum flavour flavour;
    unsigned version;  // major version of the flavour
    enum schedule schedule;
    enum recycle recycle;
    unsigned devices;
    uint64_t capacity_bytes;         // of each device
    uint64_t pinned_capacity_bytes;  // of page-locked host memory
    uint64_t granularity_bytes;      // what an allocation is rounded up to when capacity is counted
    uint64_t seed;
    uint64_t ring_entries;     // observations that are kept; older ones are saved
    uint64_t saved_bytes;      // of disk, for older observations; those that find no room are lost
    uint64_t red_zone_bytes;   // filled behind each block and verified when it is freed
    bool kernels;              // compute: who compiles them listens in the folder
    bool checks;               // judge every access of a kernel that computes
    bool hosts;                // watch the host's accesses to pinned memory that work uses
    unsigned orders;           // in how many each launch runs, to see whether its results depend on them; 0: in one
    unsigned race_launches;    // how many launches of each kernel are looked at for races of its blocks in memory
    bool is_strict;            // also tell what many correct programs do: read what is not all written
    bool faults_stop;          // a kernel with a wrong access ends, as on a device
    unsigned kernel_threads;   // that run the blocks of a launch, where its results are those of one
    unsigned kernel_seconds;   // after which a kernel is ended; 0: none is
    bool poison;               // fill memory when it is freed
    bool follows;              // flavour and version are those of a runtime that the process loaded or was linked with
    bool stacks;               // keep the call stack of what is made, freed and done wrong
};

extern struct settings settings;  // those of this process

// Fills *settings with the defaults and what text says. Returns what is wrong, or NULL; the text is static.
const char *settings_parse(struct settings *settings, const char *text);

// The release of CUDA (12090 for 12.9) of the first runtime that was found in the process, linked in statically; 0
// where there is none. The loader's module writes it (audit/embedded_version.c).
extern __attribute__((visibility("default"))) int quiesce_embedded_version;
