// Streams that wait until memory holds a value: cuStreamWaitValue32, hipStreamWaitValue32 and their like.
//
// Nobody but the writer knows when that is. Whoever waits behind it waits for ever if nobody writes, as on a device.
#pragma once

#include "machine/status.h"
#include "order/stream.h"
#include "order/work.h"

// `flags` is the comparison, of those that both flavours number alike. The memory must be known to the runtime.
enum status value_await(struct stream *stream, uint64_t address, uint64_t value, uint64_t mask, unsigned value_bytes,
                        unsigned flags);

// Writes a value in the order of a stream.
enum status value_write(struct stream *stream, uint64_t address, uint64_t value, unsigned value_bytes, unsigned flags);
