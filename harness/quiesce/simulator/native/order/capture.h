// Stream captures: which calls they forbid, and what they record.
//
// The rules are those of the CUDA C++ Programming Guide, "Prohibited and Unhandled Operations", and of the reference
// for cudaThreadExchangeStreamCaptureMode; HIP documents the same. A call that is refused invalidates the captures
// that it is about.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/edges.h"
#include "order/objects.h"
#include "order/work.h"

struct graph;
struct user_objects;

enum { MEMBERS_MAX = 64 };  // streams of one capture

enum capture_mode { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED };  // the numbers of both vendors
enum capture_state { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALID };         // the numbers of both vendors

// How much of what each member captured comes before something, and which of them its next node is to depend on.
struct progress {
    uint32_t known[MEMBERS_MAX];  // by member: its nodes up to this number; 0: none
    uint64_t frontier;            // a bit for each member whose last known node is a dependency
};

struct capture;

enum status capture_begin(struct stream *stream, enum capture_mode mode);
// The same into a graph that the client has, behind nodes of it. The graph stays the client's however the capture ends.
enum status capture_begin_into(struct stream *stream, enum capture_mode mode, uint64_t graph, void *const *nodes,
                               uint64_t count);

// Ends the capture that began on the stream; *graph becomes the client's. However it ends, the streams leave it.
enum status capture_end(struct stream *stream, uint64_t *graph);
// A stream is being destroyed. What it captured stays; without the one that it began on, the capture is over.
void capture_leave(struct stream *stream);

enum capture_state capture_state(const struct stream *stream, uint64_t *identifier);

// The graph that a stream captures into, which it goes on owning, and the nodes that its next node depends on: an array
// that is the capture's, valid until the next call that is about the stream.
enum status capture_graph(const struct stream *stream, uint64_t *graph);
enum status capture_dependencies(const struct stream *stream, const void ***nodes, uint64_t *count);

// Makes nodes of the capture's graph what the stream's next node depends on: beside what it depends on, or alone.
enum status capture_depend(struct stream *stream, void *const *nodes, uint64_t count, bool alone);

enum capture_mode capture_exchange_mode(enum capture_mode mode);  // this thread's; returns the one before

// A stream for a graph's own functions: what is put on it becomes nodes of that graph. The latest one is the only one.
struct stream *capture_into(struct graph *graph, unsigned device);

enum status capture_add(struct stream *stream, const struct work *work);

// Makes what a graph holds something that the captured one holds as well: it is launched there.
enum status capture_hold(struct stream *stream, const struct user_objects *held);
enum status capture_progress(struct stream *stream, struct progress **progress);
struct capture *capture_keep(struct capture *capture);
void capture_drop(struct capture *capture);

// What a wait of the stream for the event means where captures are concerned: nothing, joining one, or an error.
enum status capture_wait(struct stream *stream, const struct event *event);

enum status capture_forbid_unsafe(void);  // an allocation, a free, or the query of an event
enum status capture_forbid_on(struct stream *stream);  // query or synchronisation of a stream in a capture
enum status capture_forbid_default(unsigned device);   // use of a legacy default stream that blocking captures forbid
enum status capture_forbid_device(unsigned device);    // synchronisation of a device with a capture
// Calls that are unsafe for CUDA's driver 580 as well, and not for HIP: to ask or wait for another stream, and to
// allocate and free in the order of one.
enum status capture_forbid_beside(void);
enum status capture_forbid_event(const struct event *event);

void captures_close(void);
