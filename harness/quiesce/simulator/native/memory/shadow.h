// For each byte of memory that is given out here, and each device, a bit: whether every use of the byte by a kernel of
// that device is right. It is, where the byte belongs to live memory of the device or memory that all share, and was
// written. Compiled kernels look at the bits themselves (kernels/translation/checks has the same numbers); of
// bytes without them the runtime knows more (kernels/checks.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/address_space.h"
#include "memory/blocks.h"

// The first page of these addresses is nobody's: its bits stand for all addresses beyond.
#define SHADOW_BASE memory_base
#define SHADOW_COVERS MEMORY_BYTES

extern bool shadows_are_kept;

bool shadows_open(void);  // false: there are no addresses for them
void shadows_close(void);
void *shadow_of(unsigned device);  // NULL: none is kept
void *shadow_of_nothing(void);     // in which no bit is set; NULL: none is kept, or there are no addresses for it

// Which bytes the launch that runs has touched: five more bits for each byte, in tables TOUCHED_STRIDE apart, and after
// them a byte for each cell of TOUCHED_CELL bytes (kernels/touched.h). NULL: none are kept.
#define TOUCHED_STRIDE (1ull << 41)
enum { TOUCHED_TABLES = 5, TOUCHED_CELL = 512 };
extern unsigned char *shadow_touched;

// The same for each of some threads that run blocks beside each other (kernels/beside.h). NULL: there is none.
enum { SHADOW_BESIDE_MAX = 8 };
unsigned char *shadow_touched_beside(unsigned number);

// Where the bits within a range of addresses lie first; false: none do. They are terabytes, of which hardly any exist.
bool shadow_within(uint64_t start, uint64_t end, uint64_t *first, uint64_t *behind);

// Bytes were written, by whoever may; or are no longer anybody's.
void shadow_write(uint64_t address, uint64_t size_bytes);
void shadow_forget(uint64_t address, uint64_t size_bytes);
void shadow_write_for(unsigned device, uint64_t address, uint64_t size_bytes);
void shadow_forget_for(unsigned device, uint64_t address, uint64_t size_bytes);

// How many of at most 64 bytes have their bit. Bytes that no device has bits for have none.
unsigned shadow_count(unsigned device, uint64_t address, unsigned size_bytes);

// Whether all bytes of a range have their bit in bits that `shadow_of` returned.
bool shadow_is_whole(const void *bits, uint64_t address, uint64_t size_bytes);

// Up to where bytes after an address have their bit: at most so many, or fewer than 8 less than there are.
uint64_t shadow_whole_until(const void *bits, uint64_t address, uint64_t size_bytes);

// A range whose free was asked for stays memory until the stream has come to the free.
void shadow_leave(uint64_t address, uint64_t size_bytes);
bool shadow_is_leaving(uint64_t address, uint64_t *start, uint64_t *size_bytes);
