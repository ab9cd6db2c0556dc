// Streams: queues of work, and the schedule that decides when it runs.
//
// The default stream that handle 0 names is the legacy one: it and every blocking stream of its device wait for each
// other ("the legacy stream first waits on all blocking streams, the action is queued in the legacy stream, and then
// all blocking streams wait on the legacy stream": CUDA Runtime API, "Stream synchronization behavior"; HIP's null
// stream is the same). A thread's own default stream "is not a non-blocking stream" (same place): it is a blocking one.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/work.h"

struct capture;

struct stream {
    unsigned references;  // its handle, its busyness, and each event that was last recorded on it
    bool alive, nonblocking, legacy, running;  // running: a host function of its, without the lock
    unsigned device;
    int priority;
    uint64_t hidden_handle, serial;  // see hidden.h; serial 0: a legacy default stream
    struct work *head, **tail;
    unsigned queued;
    struct stream *busy_next, **busy_place;
    struct capture *capture;
    pthread_t runner;
};

enum status stream_create(unsigned device, bool nonblocking, int priority, struct stream **stream);

// CUDA's call "will return immediately and the resources … will be released automatically once the device has
// completed all work" (cudaStreamDestroy); HIP's "may wait for all commands" (hipStreamDestroy), and here it does.
enum status stream_destroy(struct stream *stream);
void stream_keep(struct stream *stream);
void stream_drop(struct stream *stream);

// What a client's handle names on its current device: 0, 1 (legacy), 2 (the thread's own) or one that was created.
// `zero_is_own`: the client was built with per-thread default streams. NULL: no such stream.
struct stream *stream_find(uint64_t handle, unsigned device, bool zero_is_own);

// Puts work on a stream, or into the graph that is being captured there. The work is copied.
enum status stream_enqueue(struct stream *stream, const struct work *work);

// Whether everything enqueued so far is complete: OK or NOT_READY.
enum status stream_query(struct stream *stream);
enum status stream_synchronize(struct stream *stream);
enum status stream_synchronize_device(unsigned device);

// Waits for a device as a free does, which a relaxed capture does not forbid.
enum status stream_finish_device(unsigned device);

// Waits for what is on the stream now, without being a synchronisation call: what a copy does that returns when it is
// complete.
enum status stream_finish(struct stream *stream);

// For events: a point behind everything on the stream; waiting for one; asking after one.
struct point *stream_mark(struct stream *stream);
enum status stream_wait(struct stream *stream, struct point *point);
enum status stream_force(struct point *point);
enum status stream_order(struct stream *stream);  // the legacy default stream's order before an action
bool stream_poll(struct point *point);            // whether it is complete; lets a piece of work run where it is not

// Runs what the schedule lets run; every call that enqueues something ends with it.
void stream_settle(void);

// Holds a stream, and lets it go: the longest legal delay, on demand.
enum status stream_stall(struct stream *stream);
void stream_release(uint64_t serial);

enum status streams_open(void);
void streams_close(void);
