// Address space that clients reserve, apart from memory: ranges of granules, to which virtual.c maps memory.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/hidden.h"
#include "machine/settings.h"
#include "machine/status.h"
#include "memory/base.h"

// What devices say: physical memory, and where it is mapped, is in multiples of it.
#define VIRTUAL_GRANULE (2ull << 20)

// Where it lies: after the arenas of blocks.h.
#define SPACE_BASE (memory_base + SPACE_OFFSET)

struct physical;

struct granule {
    struct physical *physical;
    enum { NEVER_MAPPED, MAPPED, ENDING, UNMAPPED } state;
    bool first;  // of its mapping
    unsigned char access[DEVICES_MAX];
};

struct reservation {
    struct reservation *next;  // by address
    uint64_t hidden_start, size_bytes;  // see hidden.h
    uint32_t live;  // its entry of the live table
    unsigned device;
    struct granule *granules;
};

// Where `alignment` is 0, addresses are multiples of the granule.
enum status space_reserve(uint64_t size_bytes, uint64_t alignment, uint64_t *address);
void space_give_back(struct reservation *reservation);

struct reservation *space_first(void);
struct reservation *space_at(uint64_t address);
struct granule *space_granule(uint64_t address);

// The granules of a range, or NULL where it is none of whole ones in one reservation.
struct granule *space_range(uint64_t address, uint64_t size_bytes);

// Takes what is mapped to a range out of it.
void space_hide(uint64_t address, uint64_t size_bytes);

bool space_covers(uint64_t address);
bool space_was_used(uint64_t address);  // it, or one above it, was handed out once
void space_close(void);

static inline uint64_t space_start(const struct reservation *reservation) { return HIDDEN(reservation->hidden_start); }
static inline uint64_t granules_of(uint64_t size_bytes) { return size_bytes / VIRTUAL_GRANULE; }
