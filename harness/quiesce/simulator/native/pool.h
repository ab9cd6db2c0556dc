// Memory pools: what cudaMallocAsync and hipMallocAsync allocate from.
//
// A pool holds capacity, not addresses: physical memory is mapped where it is needed. What is freed to a pool stays
// reserved by it, and goes back when a synchronisation finds more reserved than its threshold, when it is trimmed, or
// when somebody else would run out.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

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
    uint64_t hidden_handle, serial;  // see reach.h
    unsigned device;
    bool alive;  // a destroyed pool stays until its last block is freed
    uint64_t values[POOL_ATTRIBUTES];
};

enum status pool_create(unsigned device, struct pool **pool);
enum status pool_destroy(struct pool *pool);
struct pool *pool_find(uint64_t handle);

struct pool *pool_default(unsigned device);  // NULL: no memory
struct pool *pool_current(unsigned device);
enum status pool_make_current(unsigned device, struct pool *pool);

bool pool_take(struct pool *pool, uint64_t size_bytes);
void pool_give(struct pool *pool, uint64_t size_bytes);
void pool_trim(struct pool *pool, uint64_t keep_bytes);

enum status pool_get(const struct pool *pool, int attribute, uint64_t *value);
enum status pool_set(struct pool *pool, int attribute, uint64_t value);

void pools_trim(unsigned device);     // everything that is cached goes back
void pools_release(unsigned device);  // a synchronisation: what is beyond the thresholds goes back
void pools_close(void);
