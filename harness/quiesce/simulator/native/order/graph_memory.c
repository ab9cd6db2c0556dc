#include "order/graph_memory.h"

#include <stdlib.h>

#include "ledger/ledger.h"
#include "machine/forget.h"
#include "machine/settings.h"
#include "memory/memory.h"
#include "memory/places.h"
#include "memory/pool.h"
#include "memory/shadow.h"

static struct graph_memory *all;
static struct pool *pools[DEVICES_MAX];

static struct pool *pool_of(unsigned device) {
    if (!pools[device]) pools[device] = pool_of_graphs(device);
    return pools[device];
}

// Addresses of graphs are given to nobody else.
static bool is_live(const struct graph_memory *memory) { return memory_live_at(memory->address); }

// Memory that a graph leaves outlives it.
static void forget_ended(void) {
    for (struct graph_memory **place = &all; *place;) {
        struct graph_memory *memory = *place;
        if (memory->references || (is_live(memory) && !memory->freed_inside)) {
            place = &memory->next;
            continue;
        }
        *place = memory->next;
        forget(memory, sizeof *memory);
    }
}

enum status graph_memory_make(uint64_t size_bytes, unsigned device, uint64_t capture, struct graph_memory **made) {
    struct pool *pool = pool_of(device);
    struct graph_memory *memory = pool ? calloc(1, sizeof *memory) : NULL;
    if (!memory) return OUT_OF_MEMORY;
    enum status status = memory_allocate_from(pool, size_bytes, NULL, &memory->address);
    if (status) {
        free(memory);
        return status;
    }
    memory->next = all;
    all = memory;
    memory->references = 1;
    memory->size_bytes = size_bytes;
    memory->device = device;
    memory->capture = capture;
    *made = memory;
    return OK;
}

enum status graph_memory_end(uint64_t address, uint64_t capture, struct graph_memory **ended) {
    forget_ended();
    struct graph_memory *memory = all;
    while (memory && (memory->address != address || memory->freed_inside)) memory = memory->next;
    if (!memory) return INVALID_VALUE;
    *ended = memory;
    if (memory->capture != capture) return OK;
    enum status status = memory_end(address);  // of what was freed outside it observes that
    memory->freed_inside = !status;
    return status;
}

enum status graph_memory_begin_free(const struct graph_memory *memory, uint64_t stream, struct freed *freed) {
    return memory_begin_free(memory->address, stream, freed);
}

static const struct graph_memory *memory_at(uint64_t address) {
    forget_ended();
    const struct graph_memory *memory = all;
    while (memory && address - memory->address >= memory->size_bytes) memory = memory->next;
    return memory;
}

bool graph_memory_covers(uint64_t address) { return memory_at(address); }

bool graph_memory_is_open(uint64_t address) {
    const struct graph_memory *memory = memory_at(address);
    return memory && memory->freed_inside && memory->is_open;
}

void graph_memory_keep(struct graph_memory *memory) { memory->references++; }

void graph_memory_drop(struct graph_memory *memory) {
    if (--memory->references) return;
    if (!memory->launched && !memory->freed_inside && is_live(memory)) memory_end(memory->address);
    // A launch that failed half way has begun a run, and does not end it.
    if (shadows_are_kept && memory->freed_inside) shadow_forget(memory->address, memory->size_bytes);
    forget_ended();
}

enum status graph_memory_launch(struct graph_memory *memory, bool frees_on_launch, const uint64_t *stream) {
    if (memory->freed_inside) return OK;
    if (is_live(memory)) return !memory->launched || frees_on_launch ? OK : INVALID_VALUE;
    enum status status = memory_allocate_again(pools[memory->device], memory->address, memory->size_bytes, stream);
    memory->allocated_again = !status;
    return status;
}

void graph_memory_launch_ended(struct graph_memory *memory, bool launched) {
    if (launched)
        memory->launched = true;
    else if (memory->allocated_again)
        memory_end(memory->address);
    memory->allocated_again = false;
}

enum status graph_memory_fit(unsigned device, uint64_t size_bytes) {
    if (!size_bytes) return OK;
    struct pool *pool = pools[device];
    if (!pool_take(pool, size_bytes)) return OUT_OF_MEMORY;
    pool_free(pool, size_bytes);
    pool_reuse(pool, size_bytes);
    return OK;
}

void graph_memory_begin_run(const struct graph_memory *memory) {
    uint64_t start, size_bytes;
    if (memory->freed_inside && !shadow_is_leaving(memory->address, &start, &size_bytes))
        shadow_leave(memory->address, memory->size_bytes);
}

void graph_memory_end_run(const struct graph_memory *memory) {
    if (shadows_are_kept) shadow_forget(memory->address, memory->size_bytes);
}

enum status graph_memory_get(unsigned device, int attribute, uint64_t *value) {
    static const int ATTRIBUTES[] = {POOL_USED, POOL_USED_HIGH, POOL_RESERVED, POOL_RESERVED_HIGH};
    if (attribute < GRAPH_USED || attribute > GRAPH_RESERVED_HIGH) return INVALID_VALUE;
    *value = 0;
    return pools[device] ? pool_get(pools[device], ATTRIBUTES[attribute], value) : OK;
}

enum status graph_memory_set(unsigned device, int attribute, uint64_t value) {
    if (attribute != GRAPH_USED_HIGH && attribute != GRAPH_RESERVED_HIGH) return INVALID_VALUE;
    if (!pools[device]) return value ? INVALID_VALUE : OK;
    return pool_set(pools[device], attribute == GRAPH_USED_HIGH ? POOL_USED_HIGH : POOL_RESERVED_HIGH, value);
}

enum status graph_memory_trim(unsigned device) {
    if (pools[device]) pool_trim(pools[device], 0);
    return OK;
}

void graph_memory_close(void) {
    while (all) {
        struct graph_memory *next = all->next;
        free(all);
        all = next;
    }
    for (unsigned i = 0; i < DEVICES_MAX; i++) pools[i] = NULL;
}
