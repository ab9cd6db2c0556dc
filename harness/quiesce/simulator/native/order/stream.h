// Streams: queues of work, and the schedule that decides when it runs.
//
// The default stream that handle 0 names is the legacy one: it and every blocking stream of its device wait for each
// other ("the legacy stream first waits on all blocking streams, the action is queued in the legacy stream, and then
// all blocking streams wait on the legacy stream": CUDA Runtime API, "Stream synchronization behavior"; HIP's null
// stream is the same). A thread's own default stream "is not a non-blocking stream" (same place): it is a blocking one.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/objects.h"
#include "order/schedule.h"
#include "order/work.h"

void stream_keep(struct stream *stream);
void stream_drop(struct stream *stream);

struct stream *stream_legacy(unsigned device);  // its legacy default stream

// Puts work on a stream, or into the graph that is being captured there. The work is copied.
enum status stream_enqueue(struct stream *stream, const struct work *work);

// Notes a use in a stream's order that is no work of its own, so that a wait for the device is one for it too.
void stream_note_use(const struct stream *stream);

// Whether everything enqueued so far is complete: OK or NOT_READY.
enum status stream_query(struct stream *stream);
enum status stream_synchronize(struct stream *stream);
enum status stream_synchronize_device(unsigned device);
enum status stream_finish_device(unsigned device);  // as a free does, which a relaxed capture does not forbid

// Waits for what is on the stream now, without being a synchronisation call: what a copy does that returns when it is
// complete.
enum status stream_finish(struct stream *stream);

// For events: a point behind everything on the stream; waiting for one; asking after one.
struct point *stream_mark(struct stream *stream);
enum status stream_wait(struct stream *stream, struct point *point);
enum status stream_order(struct stream *stream);  // the legacy default stream's order before an action
bool stream_poll(struct point *point);            // whether it is complete; lets a piece of work run where it is not

// Holds a stream, and lets it go: the longest legal delay, on demand.
enum status stream_stall(struct stream *stream);
void stream_release(uint64_t serial);

enum status streams_open(void);
void streams_close(void);
