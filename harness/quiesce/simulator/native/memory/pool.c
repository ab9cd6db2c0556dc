#include "memory/pool.h"

#include <stdlib.h>

#include "ledger/handle.h"
#include "machine/device.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "machine/upcalls.h"
#include "memory/capacity.h"

#define CHUNK_BYTES (32ull << 20)

static struct pool *pools;
enum { PLACES = MEMORY_OF_HOST + 1 };
static struct pool *defaults[PLACES], *current[PLACES];

static struct pool *make(unsigned place) {
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pool->thing = place == MEMORY_OF_HOST ? THING_PINNED : THING_DEVICE;
    pool->place = place;
    pool->device = place == MEMORY_OF_HOST ? device_current() : place;
    pool->alive = true;
    pool->values[POOL_FOLLOW_EVENTS] = pool->values[POOL_OPPORTUNISTIC] = pool->values[POOL_INTERNAL_DEPENDENCIES] = 1;
    pool->next = pools;
    pools = pool;
    return pool;
}

// What a pool can neither give back nor hand out.
static uint64_t owed(const struct pool *pool) { return pool->values[POOL_USED] + pool->pending_bytes; }

static void discard(struct pool *pool) {
    struct pool **place = &pools;
    while (*place != pool) place = &(*place)->next;
    *place = pool->next;
    free(pool);
}

static void discard_unused(struct pool *pool) {
    if (!owed(pool) && !pool->waiting) discard(pool);
}

enum status pool_create(unsigned place, uint64_t max_bytes, struct pool **made) {
    struct pool *pool = make(place);
    if (!pool) return OUT_OF_MEMORY;
    pool->max_bytes = max_bytes;
    uint64_t handle = handle_make(THING_POOL, pool, pool->device, &pool->serial, false);
    if (!handle) {
        discard(pool);
        return OUT_OF_MEMORY;
    }
    pool->hidden_handle = HIDDEN(handle);
    *made = pool;
    return OK;
}

enum status pool_destroy(struct pool *pool) {
    if (pool == defaults[pool->place]) return INVALID_VALUE;  // "the default memory pool … cannot be destroyed"
    if (current[pool->place] == pool) current[pool->place] = NULL;
    handle_drop(HIDDEN(pool->hidden_handle));
    pool->alive = false;
    pool_trim(pool, 0);
    discard_unused(pool);
    return OK;
}

struct pool *pool_find(uint64_t handle) {
    for (unsigned i = 0; i < PLACES; i++)
        if (defaults[i] && (uint64_t)defaults[i] == handle) return defaults[i];
    return handle_find(THING_POOL, handle);
}

struct pool *pool_default(unsigned place) {
    if (!defaults[place] && (defaults[place] = make(place)))
        defaults[place]->hidden_handle = HIDDEN((uint64_t)defaults[place]);  // no handle, which somebody would own
    return defaults[place];
}

struct pool *pool_current(unsigned place) { return current[place] ? current[place] : pool_default(place); }

enum status pool_make_current(unsigned place, struct pool *pool) {
    if (pool->place != place) return INVALID_VALUE;
    current[place] = pool;
    return OK;
}

static void count(struct pool *pool, int now, int high, uint64_t value) {
    pool->values[now] = value;
    if (value > pool->values[high]) pool->values[high] = value;
}

// Takes more capacity: a chunk of it where there is room, else what is missing.
static uint64_t grow(struct pool *pool, uint64_t missing) {
    uint64_t chunks = (missing + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
    uint64_t room = pool->max_bytes ? pool->max_bytes - pool->values[POOL_RESERVED] : UINT64_MAX;
    if (settings.flavour == FLAVOUR_CUDA && chunks <= room && memory_reserve(pool->place, chunks)) return chunks;
    return missing <= room && memory_reserve(pool->place, missing) ? missing : 0;
}

struct pool *pool_of_graphs(unsigned device) {
    struct pool *pool = make(device);
    if (!pool) return NULL;
    pool->values[POOL_THRESHOLD] = UINT64_MAX;
    pool->of_graphs = true;
    return pool;
}

bool pool_take(struct pool *pool, uint64_t size_bytes) {
    uint64_t cached = pool->values[POOL_RESERVED] - owed(pool);
    uint64_t missing = size_bytes > cached ? size_bytes - cached : 0, grown = 0;
    if (missing && !(grown = grow(pool, missing))) {
        for (struct pool *other = pools; other; other = other->next)
            if (other != pool && other->place == pool->place) pool_trim(other, 0);
        if (!(grown = grow(pool, missing))) return false;
    }
    count(pool, POOL_RESERVED, POOL_RESERVED_HIGH, pool->values[POOL_RESERVED] + grown);
    count(pool, POOL_USED, POOL_USED_HIGH, pool->values[POOL_USED] + size_bytes);
    return true;
}

enum status pool_wait(struct pool *pool) {
    pool->waiting++;
    enum status status = OK;
    for (unsigned i = 0; i < settings.devices && !status; i++)
        if (i == pool->device || pool->place == MEMORY_OF_HOST) status = upcalls.order.finish_device(i);
    pool->waiting--;
    if (pool->alive) return status;
    discard_unused(pool);
    return INVALID_VALUE;
}

void pool_free(struct pool *pool, uint64_t size_bytes) {
    pool->values[POOL_USED] -= size_bytes;
    pool->pending_bytes += size_bytes;
}

void pool_reuse(struct pool *pool, uint64_t size_bytes) {
    pool->pending_bytes -= size_bytes;
    if (pool->alive) return;
    pool_trim(pool, 0);
    discard_unused(pool);
}

void pool_trim(struct pool *pool, uint64_t keep_bytes) {
    uint64_t reserved = pool->values[POOL_RESERVED];
    uint64_t kept = keep_bytes > owed(pool) ? keep_bytes : owed(pool);
    if (kept >= reserved) return;
    memory_unreserve(pool->place, reserved - kept);
    pool->values[POOL_RESERVED] = kept;
}

enum status pool_get(const struct pool *pool, int attribute, uint64_t *value) {
    if (attribute < POOL_FOLLOW_EVENTS || attribute >= POOL_ATTRIBUTES) return INVALID_VALUE;
    *value = pool->values[attribute];
    return OK;
}

enum status pool_set(struct pool *pool, int attribute, uint64_t value) {
    switch (attribute) {
        case POOL_FOLLOW_EVENTS:
        case POOL_OPPORTUNISTIC:
        case POOL_INTERNAL_DEPENDENCIES:
        case POOL_THRESHOLD: pool->values[attribute] = value; return OK;
        case POOL_RESERVED_HIGH:
        case POOL_USED_HIGH:  // "a value of 0 is the only one that may be set": it starts over at the present value
            if (value) return INVALID_VALUE;
            pool->values[attribute] = pool->values[attribute - 1];
            return OK;
        default: return INVALID_VALUE;
    }
}

int pool_access(const struct pool *pool, unsigned place) {
    return pool->place == place ? POOL_FULL_ACCESS : pool->access[place];
}

enum status pool_set_access(struct pool *pool, unsigned place, int access) {
    if (access != POOL_NO_ACCESS && access != POOL_FULL_ACCESS) return INVALID_VALUE;
    if (pool->place == place && !access) return INVALID_VALUE;  // "revoking access … to its own memory" (CUDA)
    pool->access[place] = access;
    return OK;
}

bool pools_let(unsigned place, unsigned device) {
    for (const struct pool *pool = pools; pool; pool = pool->next)
        if (pool->place == place && pool->access[device]) return true;
    return false;
}

uint64_t pools_cached(unsigned place) {
    uint64_t cached = 0;
    for (const struct pool *pool = pools; pool; pool = pool->next)
        if (pool->place == place) cached += pool->values[POOL_RESERVED] - pool->values[POOL_USED];
    return cached;
}

void pools_release(unsigned device) {
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->device == device || pool->place == MEMORY_OF_HOST) pool_trim(pool, pool->values[POOL_THRESHOLD]);
}

void pools_close(void) {
    while (pools) discard(pools);
    for (unsigned i = 0; i < PLACES; i++) defaults[i] = current[i] = NULL;
}
