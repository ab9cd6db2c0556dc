// Copies and fills: what they may touch, and when they may be complete.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/objects.h"
#include "order/work.h"

struct stream;

// Rows of width bytes; a plain copy is one row.
struct shape {
    uint64_t to_pitch, from_pitch, width, height;
};

// Whether the addresses lie where a client says that they do (cudaMemcpyKind, hipMemcpyKind); where not, that is seen.
// CUDA leaves open what a copy does that goes another way ("undefined behavior", cudaMemcpy): a device refuses it where
// it needs its own memory and gets pageable memory, and else goes by the addresses. HIP always goes by them and refuses
// one thing, a copy between pageable memory that is called another.
enum status transfer_check_direction(uint64_t to, uint64_t from, struct shape shape, int kind);

// Copies on a stream. An `asynchronous` one returns as early as the documents allow, see transfer.c.
enum status transfer_copy(struct stream *stream, uint64_t to, uint64_t from, struct shape shape, bool asynchronous);

// Fills with a value of 1, 2 or 4 bytes.
enum status transfer_fill(struct stream *stream, struct fill fill, bool asynchronous);

// Whether what a piece of work reads and writes may be used, as memory_check() has it; of addresses that are `excepted`
// (NULL: none are) nothing is said.
enum status transfer_check(const struct work *work, bool (*excepted)(uint64_t address));

// Says in the ledger what a piece of work on a stream will read and write. A source may be `read_at_once`: before the
// call returns. Work of a graph may be on a branch, which the ledger has like a stream.
void transfer_observe(const struct stream *stream, const struct work *work, bool read_at_once);
void transfer_observe_on(const struct branch *branch, const struct work *work, bool read_at_once);

// A client asked what lies at an address, and was told that it is page-locked host memory.
void transfer_asked_about_pinned(uint64_t address);
