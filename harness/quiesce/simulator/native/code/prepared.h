// What a launch of CUDA 3 is made of: a client sets it of a function, one call after another, and then launches.
// Kept until the runtime closes, as the handles of functions are.
#pragma once

#include <stdint.h>

enum { PREPARED_BYTES_MAX = 4096 };  // of parameters: as many as kernels had before CUDA 12.1

struct prepared {
    uint64_t function;
    uint32_t block[3], shared_bytes, bytes;
    unsigned char parameters[PREPARED_BYTES_MAX];
};

// Of a function that exists; the first time nothing is set. NULL: no memory is left.
struct prepared *prepared_of(uint64_t function);
void prepared_close(void);
