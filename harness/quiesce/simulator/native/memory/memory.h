// Memory of every kind: what a client owns, what it may hold of each kind, and what lies at an address.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/settings.h"
#include "machine/status.h"
#include "order/work.h"

struct pool;
struct stream;

struct span {
    enum thing thing;  // THING_NONE: pageable memory, of which nothing is known
    unsigned device;
    uint64_t start, size_bytes;
    unsigned flags;  // those that the memory was allocated or registered with
    bool dead;       // it was freed
};

bool memory_open(void);
void memory_close(void);

// Allocates device, pinned or managed memory. Nothing is allocated for no bytes: the address is 0, and that is no error
// (hipMalloc: "If size is 0, no memory is allocated, *ptr returns nullptr, and hipSuccess is returned").
enum status memory_allocate(enum thing thing, unsigned device, uint64_t size_bytes, unsigned flags, uint64_t *address);

// Frees memory of one of two kinds after everything on the device is done: hipFree and hipHostFree "perform an implicit
// hipDeviceSynchronize() call", and CUDA's documents count both among what synchronises implicitly. 0 frees nothing.
enum status memory_free(enum thing thing, enum thing other, uint64_t address);

// Memory that is allocated and freed in the order of a stream, and belongs to a pool while it is cached.
enum status memory_allocate_ordered(struct pool *pool, uint64_t size_bytes, struct stream *stream, uint64_t *address);
enum status memory_allocate_from(struct pool *pool, uint64_t size_bytes, uint64_t *address);  // in no stream's order
enum status memory_free_ordered(uint64_t address, struct stream *stream);
// Ends a client's ownership of memory of a graph.
enum status memory_end(uint64_t address);
// Allocates memory of a graph again, where it lay, in the order of a stream or (NULL) in none.
enum status memory_allocate_again(struct pool *pool, uint64_t address, uint64_t size_bytes,
                                  const struct stream *stream);
void memory_finish_free(const struct freed *freed);  // the stream has come to the free

enum status memory_register(uint64_t address, uint64_t size_bytes, unsigned flags);
enum status memory_unregister(uint64_t address);

// A client gives an address to a function that frees another kind of thing: says so in the ledger.
void memory_refuse(uint64_t address);
void memory_refuse_twice(uint64_t address);  // it was freed before

// What lies at an address.
struct span memory_find(uint64_t address);

// Whether size bytes at an address may be used: INVALID_VALUE for memory that was freed, or that ends before.
enum status memory_check(uint64_t address, uint64_t size_bytes);

// Sets memory that may be used to zero.
void memory_clear(uint64_t address, uint64_t size_bytes);

// The entry of what is live at an address, or 0; whether an address belongs to memory that is given out here.
uint32_t memory_live_at(uint64_t address);
bool memory_covers(uint64_t address);

// Calls `add` for each place where this module keeps addresses of its own.
void memory_tables(void (*add)(const void *start, size_t bytes));

void memory_info(unsigned device, uint64_t *free_bytes, uint64_t *total_bytes);

// Capacity of a device, or of what can be page-locked, for pools: memory that they hold, in use or cached.
enum { MEMORY_OF_HOST = DEVICES_MAX + 1 };
bool memory_reserve(unsigned place, uint64_t size_bytes);
void memory_unreserve(unsigned place, uint64_t size_bytes);
uint64_t memory_used(enum thing thing, unsigned device);  // where that kind lies; managed memory is device 0's
