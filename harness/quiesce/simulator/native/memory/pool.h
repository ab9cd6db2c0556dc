// Memory pools: what cudaMallocAsync and hipMallocAsync allocate from.
//
// A pool holds capacity, not addresses: physical memory is mapped where it is needed. CUDA's grows by 32 MiB where
// there is room (cupy/cupy#5177). What is freed to a pool counts as unused at once, can be used again when the stream
// has come to the free, and stays reserved until a synchronisation finds more than the threshold, it is trimmed, or
// another pool would run out. An ordinary allocation runs out before: CuPy's tests of its asynchronous pool, which pass
// on devices, expect that memory of a pool can be had by cudaMalloc only behind a synchronisation.
//
// CUDA has pools of page-locked memory of the host as well, since 12.2 (cudaMemPoolCreate); HIP answers "invalid value"
// (ROCm/clr, hip_mempool.cpp).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/settings.h"
#include "machine/status.h"

enum pool_attribute {  // the numbers of cudaMemPoolAttr and hipMemPoolAttr
    POOL_FOLLOW_EVENTS = 1,
    POOL_OPPORTUNISTIC = 2,
    POOL_INTERNAL_DEPENDENCIES = 3,
    POOL_THRESHOLD = 4,
    POOL_RESERVED = 5,
    POOL_RESERVED_HIGH = 6,
    POOL_USED = 7,
    POOL_USED_HIGH = 8,
    POOL_ATTRIBUTES,
};

struct pool {
    struct pool *next;
    uint64_t hidden_handle, serial;  // see hidden.h
    enum thing thing;    // what its blocks are: device or pinned memory
    unsigned place;      // whose capacity it takes: the device's, or MEMORY_OF_HOST
    unsigned device;     // that it is on; of the host's the one that was current
    uint64_t max_bytes;  // that it may hold; 0: as much as there is
    bool alive;  // a destroyed pool stays until its last block is freed
    bool of_graphs;  // addresses of its blocks belong to graphs and are not given to others
    unsigned waiting;        // allocations that wait for frees: the pool stays until they are over
    uint64_t pending_bytes;  // freed, and not come to yet
    uint64_t values[POOL_ATTRIBUTES];
    int access[DEVICES_MAX + 2];  // what each other device, or the host, may do
};

enum status pool_create(unsigned place, uint64_t max_bytes, struct pool **pool);
enum status pool_destroy(struct pool *pool);
struct pool *pool_find(uint64_t handle);

struct pool *pool_default(unsigned place);  // NULL: no memory
struct pool *pool_current(unsigned place);
enum status pool_make_current(unsigned place, struct pool *pool);

// The pool that graphs of a device allocate from; it keeps everything until it is trimmed. NULL: no memory.
struct pool *pool_of_graphs(unsigned device);

bool pool_take(struct pool *pool, uint64_t size_bytes);
// Waits for frees that streams have not come to, which another thread may use to destroy the pool: INVALID_VALUE.
enum status pool_wait(struct pool *pool);
void pool_free(struct pool *pool, uint64_t size_bytes);   // the client gave it up
void pool_reuse(struct pool *pool, uint64_t size_bytes);  // and the stream has come to that
void pool_trim(struct pool *pool, uint64_t keep_bytes);

enum status pool_get(const struct pool *pool, int attribute, uint64_t *value);
enum status pool_set(struct pool *pool, int attribute, uint64_t value);

// What a device may do with a pool's memory (cudaMemAccessFlags: 0 nothing, 3 all there is). Its own may do all, and
// the host with its own ("their default accessibility will be from the host CPU").
enum { POOL_NO_ACCESS = 0, POOL_FULL_ACCESS = 3 };
int pool_access(const struct pool *pool, unsigned place);
enum status pool_set_access(struct pool *pool, unsigned place, int access);
bool pools_let(unsigned place, unsigned device);  // whether a device has access to any pool of a place

uint64_t pools_cached(unsigned place);  // what its pools have reserved and nobody owns; frees under way included
void pools_release(unsigned device);  // a synchronisation: what is beyond the thresholds goes back
void pools_close(void);
