#include "order/value.h"

#include "machine/settings.h"
#include "memory/places.h"
#include "order/transfer.h"

// A write that comes from a remote device is followed by a flush before later work runs: it has no meaning here.
enum { FLUSH = 1u << 30 };  // CU_STREAM_WAIT_VALUE_FLUSH

enum status value_await(struct stream *stream, uint64_t address, uint64_t value, uint64_t mask, unsigned value_bytes,
                        unsigned flags) {
    if (settings.flavour == FLAVOUR_CUDA) flags &= ~(unsigned)FLUSH;
    if (flags > COMPARE_NOR || address % value_bytes || memory_find(address).thing == THING_NONE) return INVALID_VALUE;
    enum status status = memory_check(address, value_bytes);
    if (status) return status;
    struct value_wait wait = {address, value & mask, mask, value_bytes, (enum comparison)flags};
    struct work work = {.kind = WORK_VALUE, .value = wait};
    if (!stream->capture) transfer_observe(stream, &work, false);
    return stream_enqueue(stream, &work);
}

enum status value_write(struct stream *stream, uint64_t address, uint64_t value, unsigned value_bytes, unsigned flags) {
    enum { NO_BARRIER = 1 };  // CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER: what came before is written all the same
    bool known = settings.flavour == FLAVOUR_HIP || flags <= NO_BARRIER;
    if (!known || address % value_bytes || memory_find(address).thing == THING_NONE) return INVALID_VALUE;
    struct fill fill = {address, value_bytes, value_bytes, 1, value, value_bytes};
    return transfer_fill(stream, fill, true);
}
