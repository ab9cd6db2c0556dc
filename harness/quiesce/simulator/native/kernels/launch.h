// Launches, whoever makes them.
#pragma once

#include "code/module.h"
#include "kernels/call.h"
#include "order/stream.h"

// What is launched: a function of a module, or one of the client's own (a stub that its compiler registered).
struct callee {
    uint64_t function;
    const void *stub;  // where it is not NULL
    struct arguments arguments;
    uint64_t shared_bytes;
    bool is_cooperative;  // "all blocks run at the same time", and may wait for each other
    bool has_clusters;
};

// Notes what the attributes of a launch say (CUlaunchAttribute, cudaLaunchAttribute) that kernels see.
void launch_attributes(struct callee *callee, const void *attributes, unsigned count);

void launches_open(void);

// Puts a launch on a stream. NULL: nothing is known of what it computes.
enum status launch(struct stream *stream, struct dim3 grid, struct dim3 block, const struct callee *callee);

// Puts a launch of a kernel of a library's on a stream, which the client does not name. `pointers`: to each argument.
enum status launch_of_library(struct stream *stream, const struct kernel *kernel, const struct dimensions *dimensions,
                              void **pointers);

// The same for a vendor's runtime: with CUDA's, a stream of another device than the current one is an invalid handle.
enum status launch_by_runtime(struct stream *stream, struct dim3 grid, struct dim3 block, const struct callee *callee);

// The same for CUDA's driver, which has no error of its own for a block with too many threads.
enum status launch_by_driver(struct stream *stream, struct dim3 grid, struct dim3 block, const struct callee *callee);
