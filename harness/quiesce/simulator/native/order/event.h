// Events: a name for a point on a stream.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/objects.h"

enum status event_create(unsigned device, bool timing, struct event **event);

// Legal while work waits for it: what waits, waits for the point.
void event_destroy(struct event *event);
struct event *event_find(uint64_t handle);

enum status event_record(struct event *event, struct stream *stream);

// Later work of the stream waits. An event that was never recorded holds nothing: the call "acts as if the record has
// already completed, and so is a functional no-op" (cuStreamWaitEvent).
enum status event_wait(struct event *event, struct stream *stream);
enum status event_query(struct event *event);
enum status event_synchronize(struct event *event);

// Milliseconds between two recordings, one microsecond for each piece of work that ran between them.
enum status event_elapsed(const struct event *start, const struct event *end, float *milliseconds);
