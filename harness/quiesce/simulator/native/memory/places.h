// What lies where: any address that a client names, whatever made it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"
#include "memory/span.h"

// What lies at an address.
struct span memory_find(uint64_t address);

// Whether size bytes at an address may be used: INVALID_VALUE for memory that was freed, or that ends before.
enum status memory_check(uint64_t address, uint64_t size_bytes);

// Sets memory that may be used to zero.
void memory_clear(uint64_t address, uint64_t size_bytes);

// The entry of what is live at an address, or 0; whether an address belongs to memory that is given out here.
uint32_t memory_live_at(uint64_t address);
bool memory_covers(uint64_t address);
bool memory_is_of_host(uint64_t address);  // also managed memory: threads of the host may write to it at any time
bool memory_is_of_heap(uint64_t address);  // which kernels allocate
bool memory_is_shared(uint64_t address);   // work of other processes may write to it at any time

// Calls `add` for each place where the memory's own tables keep addresses.
void memory_tables(void (*add)(const void *start, size_t bytes));
