// Events: a name for a point on a stream.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"
#include "memory/shared_table.h"
#include "order/objects.h"

enum status event_create(unsigned device, bool timing, bool interprocess, struct event **event);

// An event for other processes of the run, and one of theirs (memory/shared_table.h). The work before it ends when it
// is recorded, so that whoever waits for it elsewhere waits for nothing: a process runs the work of its own streams.
enum status event_export(struct event *event, struct shared_handle *handle);
enum status event_import(const struct shared_handle *handle, struct event **event);

// Legal while work waits for it: what waits, waits for the point.
void event_destroy(struct event *event);
struct event *event_find(uint64_t handle);

enum status event_record(struct event *event, struct stream *stream);
// The same by a node of a graph that is launched on the stream.
enum status event_record_on(struct event *event, struct stream *stream, const struct branch *branch);
enum status event_wait_on(struct event *event, struct stream *stream, const struct branch *branch);

// Later work of the stream waits. An event that was never recorded holds nothing: the call "acts as if the record has
// already completed, and so is a functional no-op" (cuStreamWaitEvent).
enum status event_wait(struct event *event, struct stream *stream);

// The same of an event that is external to a capture on the stream: a node of the graph does it whenever that runs.
enum status event_record_external(struct event *event, struct stream *stream);
enum status event_wait_external(struct event *event, struct stream *stream);

enum status event_query(struct event *event);
enum status event_synchronize(struct event *event);

// Milliseconds between two recordings, one microsecond for each piece of work that ran between them.
enum status event_elapsed(const struct event *start, const struct event *end, float *milliseconds);
