// What memory asks of the order of work, which lies above it: order/stream.c and order/capture.c have these functions.
#pragma once

#include "machine/status.h"

// Waits for a device as a free does, which a relaxed capture does not forbid.
enum status stream_finish_device(unsigned device);

// Whether captures forbid an allocation, a free or the query of an event.
enum status capture_forbid_unsafe(void);
