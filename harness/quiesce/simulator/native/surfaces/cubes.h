// Copies of planes as the driver takes them, on a stream or for a node of a graph.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/stream.h"

enum memory_type { HOST = 1, DEVICE, ARRAY, UNIFIED };  // CUmemorytype

struct side_3d {  // one half of CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER; the context follows from the address
    size_t x_bytes, y, z, level;
    int type;
    uint64_t host, device, array, context;
    size_t pitch, height;
};

struct cube {  // CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER
    struct side_3d from, to;
    size_t width, height, depth;
};

enum status cube_copy(const struct cube *copy, struct stream *stream, bool asynchronous);
