// What footprints (footprints.h) need to know of a launch.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// `parameters` are in plain sight.
struct footprint_launch {
    const int64_t *table;  // NULL: the object has none
    const unsigned char *parameters;
    uint32_t parameter_bytes;
    const uint32_t *grid, *block;
    // The address of a variable of the module.
    uint64_t (*variable)(const void *of, uint64_t number);
    const void *of;
    // The memory that an address points into. False: none that is known.
    bool (*find)(uint64_t address, uint64_t *start, uint64_t *bytes);
};
