// What streams and events consist of. stream.h and event.h have what can be done with them; a capture, which both ask,
// looks into them.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct point;
struct progress;
struct work;
struct capture;
struct shared_entry;

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

// What work is in the order of, as the ledger has it: a stream, or a branch of a launch of a graph.
struct branch {
    unsigned device;
    uint64_t serial;
    const struct work *node;  // of a graph with branches: whose work it is, NULL: of the call that is under way
};

struct event {
    uint64_t hidden_handle, serial;  // see hidden.h
    unsigned device;
    bool timing, interprocess;
    struct shared_entry *shared;  // of one that was exported or imported, else NULL
    bool imported;
    struct point *point;      // of the last recording, NULL: none
    struct stream *stream;    // that it was last recorded on, dead or alive
    uint64_t recorded;        // how many observations there were then
    struct capture *capture;  // that it was last recorded in
    struct progress *progress;  // what of that capture it stands for
};
