// Memory that is allocated and freed in the order of a stream, and belongs to a pool while it is cached. In a capture
// it is memory of the graph.
#pragma once

#include <stdint.h>

#include "machine/status.h"

struct pool;
struct stream;

enum status memory_allocate_ordered(struct pool *pool, uint64_t size_bytes, struct stream *stream, uint64_t *address);
enum status memory_free_ordered(uint64_t address, struct stream *stream);
