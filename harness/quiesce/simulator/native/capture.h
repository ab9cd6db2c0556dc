// Stream captures: which calls they forbid, and what they record.
//
// The rules are those of the CUDA C++ Programming Guide, "Prohibited and Unhandled Operations", and of the reference
// for cudaThreadExchangeStreamCaptureMode; HIP documents the same. A call that is refused invalidates the captures
// that it is about.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "status.h"
#include "work.h"

struct event;
struct stream;

enum capture_mode { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED };  // the numbers of both vendors
enum capture_state { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALID };         // the numbers of both vendors

// What was captured, in an order in which it may run.
struct nodes {
    struct work *head, **tail;
    unsigned count;
};

struct capture;

enum status capture_begin(struct stream *stream, enum capture_mode mode);

// Ends the capture that began on the stream; *nodes becomes the caller's. However it ends, the streams leave it.
enum status capture_end(struct stream *stream, struct nodes *nodes);
void capture_abandon(struct stream *stream);  // its stream is being destroyed

enum capture_state capture_state(const struct stream *stream, uint64_t *identifier);
enum capture_mode capture_exchange_mode(enum capture_mode mode);  // this thread's; returns the one before

enum status capture_add(struct stream *stream, const struct work *work);
enum status capture_progress(struct stream *stream, uint32_t **progress);
struct capture *capture_keep(struct capture *capture);
void capture_drop(struct capture *capture);

// What a wait of the stream for the event means where captures are concerned: nothing, joining one, or an error.
enum status capture_wait(struct stream *stream, const struct event *event);

enum status capture_forbid_unsafe(void);              // allocation, free, query of an event
enum status capture_forbid_on(struct stream *stream);  // query or synchronisation of a stream in a capture
enum status capture_forbid_default(unsigned device);   // use of a legacy default stream that blocking captures forbid
enum status capture_forbid_device(unsigned device);    // synchronisation of a device with a capture
enum status capture_forbid_event(const struct event *event);

void nodes_delete(struct nodes *nodes);
void captures_close(void);
