// Fatbins: a header and entries, each a header of its own with the architecture and behind it PTX or a cubin, often
// compressed (as n-eiling/cuda-fatbin-decompression and jiegec/fatbinary have it; nvcc 11.8 to 13 were tried). Clients
// hand one over within the structure that a compiler wrote beside it (fatbinary_section.h: __fatBinC_Wrapper_t).
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WRAPPER_MAGIC 0x466243b1u
#define HIP_WRAPPER_MAGIC 0x48495046u
#define FATBIN_MAGIC 0xba55ed50u

struct fatbin_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes, options;
    uint16_t minor, major;
    uint32_t architecture;
};

// What follows in a header that is long enough.
struct fatbin_packing {
    uint32_t name_offset, name_bytes;
    uint64_t flags, reserved, plain_bytes;
};

enum { ENTRY_PTX = 1, ENTRY_CUBIN = 2 };

struct fatbin_part {
    struct fatbin_entry entry;
    struct fatbin_packing packing;  // zeros where the header is shorter
    const char *content;            // NULL: there is none
};

// The fatbin itself where an image is one or wraps one, and its magic number; else NULL.
const char *fatbin_of(const char *image);

// Where an image wraps code that nvcc linked (-rdc=true): the fatbins that were linked, and NULL; else NULL.
const char *const *fatbins_linked(const char *image);

// The part that `rank` gives the highest number above 0.
struct fatbin_part fatbin_best(const char *fatbin, size_t room, int device,
                               int (*rank)(const struct fatbin_entry *entry, int device));
