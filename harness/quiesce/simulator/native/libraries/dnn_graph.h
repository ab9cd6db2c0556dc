// Descriptors of cuDNN's graph interface: tensors, operations, graphs of these, engines, plans and variant packs.
//
// A descriptor is a list of attributes. What it is told of another descriptor it copies, as far down as there is
// anything, so that a plan holds all that quiesce.libraries.dnn_graph reads there when it is executed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Statuses of cuDNN 9. Those of cuDNN 8 are fewer (dnn_statuses.h).
struct dnn_descriptor;

int dnn_graph_create(int type, struct dnn_descriptor **made);
int dnn_graph_destroy(struct dnn_descriptor *descriptor);
int dnn_graph_set(struct dnn_descriptor *descriptor, int name, int type, int64_t count, const void *elements);
int dnn_graph_get(const struct dnn_descriptor *descriptor, int name, int type, int64_t most, int64_t *count,
              void *elements);
int dnn_graph_finalize(struct dnn_descriptor *descriptor);
