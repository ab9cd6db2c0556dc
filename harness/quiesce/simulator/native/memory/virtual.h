// Virtual memory management: address space and physical memory apart, and mappings that join them (CUDA Driver API,
// "Virtual Memory Management"; HIP's functions are the same).
//
// Physical memory is shared memory of the host, so that it can be mapped at several addresses at once. What is
// unmapped, or was not given access to, can't be touched by the host either. Races are judged by address: two addresses
// of one piece of memory are two pieces to them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"
#include "memory/address_space.h"
#include "memory/span.h"

struct virtual_location {  // CUmemLocation, hipMemLocation
    int kind, ordinal;
};

struct virtual_properties {  // CUmemAllocationProp, hipMemAllocationProp
    int kind, handle_kinds;
    struct virtual_location location;
    void *security;
    unsigned char flags[8];
};

struct virtual_access {  // CUmemAccessDesc, hipMemAccessDesc
    struct virtual_location location;
    int access;
};

enum status virtual_give_back(uint64_t address, uint64_t size_bytes);

enum status virtual_check(const struct virtual_properties *properties);
enum status virtual_create(uint64_t size_bytes, const struct virtual_properties *properties, uint64_t *handle);
enum status virtual_release(uint64_t handle);
enum status virtual_retain(uint64_t address, uint64_t *handle);  // the handle of what is mapped there, once more
enum status virtual_describe(uint64_t handle, struct virtual_properties *properties);

enum status virtual_map(uint64_t address, uint64_t size_bytes, uint64_t handle);
// Whole mappings only. CUDA's document does not say that it waits, and PyTorch's allocator therefore does so before it:
// a use that is not complete is judged as a race, and is let end.
enum status virtual_unmap(uint64_t address, uint64_t size_bytes);
enum status virtual_set_access(uint64_t address, uint64_t size_bytes, const struct virtual_access *access,
                               size_t count);
enum status virtual_get_access(uint64_t address, const struct virtual_location *location, unsigned long long *access);

// As in places.h, for addresses that space_covers() names.
struct span virtual_find(uint64_t address);
uint32_t virtual_live_at(uint64_t address);
uint32_t virtual_space_at(uint64_t address);  // the entry of the address space itself

void virtual_reset(unsigned device);  // unmaps and frees what lies on a device
void virtual_close(void);
