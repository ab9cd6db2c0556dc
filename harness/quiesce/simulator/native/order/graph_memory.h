// Memory of graphs: what a captured cudaMallocAsync allocates, at an address that is known when it is captured.
//
// It counts from the capture on, where a device takes it at the first launch, and it is a pool of its own, which keeps
// what is freed inside a graph until it is trimmed ("cudaDeviceGraphMemTrim: Free unused memory that was cached on the
// specified device for use with graphs"). A graph that was never launched gives back what it did not free.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"

struct freed;

struct graph_memory {
    struct graph_memory *next;
    unsigned references;  // the nodes that allocate or free it, of a graph and of those that were instantiated from it
    uint64_t address, size_bytes;
    uint64_t capture;  // the identifier of the one that allocates it
    unsigned device;
    bool launched, freed_inside, allocated_again;
    bool is_open;  // a launch has come to the node that allocates it, and not to the one that frees it
};

// Makes memory with one reference, the caller's, that a capture allocates.
enum status graph_memory_make(uint64_t size_bytes, unsigned device, uint64_t capture, struct graph_memory **made);

// Frees it in a capture. Only what a graph allocated can be freed in one (cudaGraphAddMemFreeNode: INVALID_VALUE). In
// the capture that allocates it, it ends at once. In another one it is freed by each launch of that graph, in between
// it is the client's, as memory that a graph leaves.
enum status graph_memory_end(uint64_t address, uint64_t capture, struct graph_memory **ended);

// Begins the free of memory by a launch of another graph than the one that allocates it, on the stream with a serial.
enum status graph_memory_begin_free(const struct graph_memory *memory, uint64_t stream, struct freed *freed);

void graph_memory_keep(struct graph_memory *memory);
void graph_memory_drop(struct graph_memory *memory);

// Begins a launch of a graph with this memory, on the stream with a serial (NULL: the launch is captured). "Unfreed
// allocations" of the launch before forbid it, but for graphs that were instantiated to free them
// (cudaGraphInstantiateFlagAutoFreeOnLaunch). What was freed outside of the graph is allocated again, where it lay.
// `ended` says whether the whole launch came about.
enum status graph_memory_launch(struct graph_memory *memory, bool frees_on_launch, const uint64_t *stream);
void graph_memory_launch_ended(struct graph_memory *memory, bool launched);

// Begins a launch of a graph that needs so many bytes at once besides those that it leaves: they stay reserved.
enum status graph_memory_fit(unsigned device, uint64_t size_bytes);

// A stream comes to the node that allocates it, or to the one that frees it. What a graph frees is no memory to the
// ledger from the capture on: to kernels it is memory in between.
void graph_memory_begin_run(const struct graph_memory *memory);
void graph_memory_end_run(const struct graph_memory *memory);

// Whether an address lies in memory of a graph, which is live and freed by turns as the graph is launched; whether the
// launch that is under way may use it there.
bool graph_memory_covers(uint64_t address);
bool graph_memory_is_open(uint64_t address);

enum graph_memory_attribute { GRAPH_USED, GRAPH_USED_HIGH, GRAPH_RESERVED, GRAPH_RESERVED_HIGH };  // of both vendors
enum status graph_memory_get(unsigned device, int attribute, uint64_t *value);
enum status graph_memory_set(unsigned device, int attribute, uint64_t value);
enum status graph_memory_trim(unsigned device);
void graph_memory_close(void);
