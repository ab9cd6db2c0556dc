// Streams by the handles that clients have of them: made, found and destroyed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"

struct stream;

enum status stream_create(unsigned device, bool nonblocking, int priority, struct stream **stream);

// CUDA's call "will return immediately and the resources … will be released automatically once the device has
// completed all work" (cudaStreamDestroy); HIP's "may wait for all commands" (hipStreamDestroy), and here it does.
enum status stream_destroy(struct stream *stream);

// What a client's handle names on its current device: 0, 1 (legacy), 2 (the thread's own) or one that was created.
// `zero_is_own`: the client was built with per-thread default streams. NULL: no such stream.
struct stream *stream_find(uint64_t handle, unsigned device, bool zero_is_own);

// Whether work of others than a stream (serial 0: the legacy one) of a device may run while its own does, and change
// memory of the device: that of streams that exist, and of devices that have access to its memory.
bool stream_may_run_beside(uint64_t serial, unsigned device);

void stream_handles_open(void);
