// Memory that is allocated and freed, of every kind that has addresses of its own here.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/status.h"

struct pool;

// Memory whose free a stream has not come to yet: nobody owns it, and its address is taken.
struct freed {
    uint64_t address, size_bytes, footprint_bytes;
    unsigned device;
    struct pool *pool;  // that it goes back to, or NULL
};

bool memory_open(void);
const char *memory_why_not(void);  // a sentence, after memory_open() failed; static
void memory_close(void);

#define MEMORY_CONSTANT (1u << 31)  // of the flags: kernels may not write it

// Allocates device, pinned or managed memory. Nothing is allocated for no bytes: the address is 0, and that is no error
// (hipMalloc: "If size is 0, no memory is allocated, *ptr returns nullptr, and hipSuccess is returned").
enum status memory_allocate(enum thing thing, unsigned device, uint64_t size_bytes, unsigned flags, uint64_t *address);

// Frees memory of one of two kinds after everything on the device is done: hipFree and hipHostFree "perform an implicit
// hipDeviceSynchronize() call", and CUDA's documents count both among what synchronises implicitly. 0 frees nothing.
enum status memory_free(enum thing thing, enum thing other, uint64_t address);

// Memory of a pool, in the order of the stream with a serial, or (NULL) of none.
enum status memory_allocate_from(struct pool *pool, uint64_t size_bytes, const uint64_t *stream, uint64_t *address);

// Ends a client's ownership in the order of the stream with a serial; memory_finish_free() once that has come to it.
enum status memory_begin_free(uint64_t address, uint64_t stream, struct freed *freed);
void memory_finish_free(const struct freed *freed);

// Whether a device may use the memory of its own or of another one at an address: access that was enabled between
// devices counts, and that to a pool ("cudaMemPoolSetAccess"). Of memory that is being freed nobody knows the pool.
bool memory_is_open_to(unsigned device, uint64_t address, unsigned owner);

// Ends a client's ownership of memory of a graph.
enum status memory_end(uint64_t address);
// Allocates memory of a graph again, where it lay, in the order of the stream with a serial, or (NULL) of none.
enum status memory_allocate_again(struct pool *pool, uint64_t address, uint64_t size_bytes, const uint64_t *stream);
