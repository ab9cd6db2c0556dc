// Devices: which is current, and what is said of each.
//
// The figures are those of no real card. They are what a client needs in order to start, and no promise of the device
// profile rests on them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"

// Limits of launches, as on devices of compute capability 8.0 (CUDA C++ Programming Guide, "Technical Specifications
// per Compute Capability"): sizes of blocks and grids, and the shared memory of a block that asks for no more, of one
// that does, of a multiprocessor, and of it the part that the system takes for each block.
enum { BLOCK_X_MAX = 1024, BLOCK_Y_MAX = 1024, BLOCK_Z_MAX = 64 };
enum { GRID_X_MAX = 0x7fffffff, GRID_Y_MAX = 65535, GRID_Z_MAX = 65535 };
enum { SHARED_BLOCK_BYTES = 48 << 10, SHARED_OPTIN_BYTES = 163 << 10 };
enum { SHARED_MULTIPROCESSOR_BYTES = 164 << 10, SHARED_RESERVED_BYTES = 1 << 10 };

unsigned device_current(void);
enum status device_select(int ordinal);

// The number of the context that is current (order/driver_context.h). device_select() makes the device's primary one
// current, which has the device's number.
unsigned device_context(void);
void device_select_context(unsigned number, unsigned device);
bool device_exists(int ordinal);

// A structure's size and the fields of it that are filled, a nameless one behind the last.
struct layout {
    const char *name;
    size_t bytes;
    struct field {
        const char *name;
        uint16_t offset;
    } fields[40];
};

// The layout that a function fills: by the function, for the old names still fill the old structures.
enum layouts { LAYOUT_CUDA_11, LAYOUT_CUDA_12, LAYOUT_CUDA_13, LAYOUT_HIP_5, LAYOUT_HIP_6 };
const struct layout *device_layout(enum layouts number);
void device_properties(void *properties, unsigned device, const struct layout *layout);

// The attributes that are known; `attribute` is the flavour's number.
enum status device_attribute(int attribute, unsigned device, int *value);

// Its compute capability, 80 for 8.0: what code is compiled for.
int device_capability(void);

// Limits of kernels that a client sets: UNSUPPORTED_LIMIT for others than these. The heap's is kernels/device_heap.h's,
// and that of what is printed is kept alone.
enum { LIMIT_STACK, LIMIT_PRINT, LIMIT_HEAP, LIMITS };
size_t device_limit_of(unsigned device, int limit);
enum status device_limit(int limit, size_t **bytes);

// Access between devices, which a client enables in each direction.
enum status device_enable_peer(unsigned peer);
enum status device_disable_peer(unsigned peer);
bool device_may_use(unsigned device, unsigned peer);

// The release that runtime and driver say they are: the last one of the version, so that clients that were built with
// an earlier one of it take it (major * 1000 + minor * 10, as in CUDART_VERSION and CUDA_VERSION).
int device_release(void);

// What a device is called, and a made-up identifier, by which devices can be told apart. AMD's devices have a number
// (sysfs, unique_id), which is written in its sixteen digits as the identifier of HIP.
enum { DEVICE_UUID_BYTES = 16 };
uint64_t device_number(unsigned device);
void device_name(char *text, size_t bytes, unsigned device);
void device_uuid(void *bytes, unsigned device);

// Where a device is on the bus, and which device is there; INVALID_DEVICE where there is none.
void device_bus(char *text, size_t bytes, unsigned device);
enum status device_on_bus(const char *text, int *device);

// What one device may do with another's memory (cudaDeviceP2PAttr). INVALID_DEVICE for one with itself.
enum status device_peer_attribute(int attribute, int device, int peer, int *value);

// What a client set of a device is as it was at the start.
void device_forget(unsigned device);
void devices_open(void);
