// Descriptors of cuDNN's functions that compute one thing each: what they hold, as quiesce.libraries.dnn_descriptors
// reads it, and what can be said of them. "The contents are opaque": their layouts are ours.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNN_DIMENSIONS_MAX = 8 };

// Of a tensor, and of a filter, whose strides follow from its format.
struct dnn_tensor {
    int type, count;
    int dimensions[DNN_DIMENSIONS_MAX], strides[DNN_DIMENSIONS_MAX];
    int format;
};

struct dnn_convolution {
    int count;
    int pads[DNN_DIMENSIONS_MAX], strides[DNN_DIMENSIONS_MAX], dilations[DNN_DIMENSIONS_MAX];
    int mode, type, groups, math, reorder;
};

struct dnn_pooling {
    int mode, nan, count;
    int windows[DNN_DIMENSIONS_MAX], pads[DNN_DIMENSIONS_MAX], strides[DNN_DIMENSIONS_MAX];
};

struct dnn_activation {
    int mode, nan;
    double coefficient, swish_beta;
};

struct dnn_operation {
    int operation, type, nan, indices, indices_type;
};

// cudnnConvolutionFwdAlgoPerf_t, and those of the gradients.
struct dnn_performance {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
};

// Statuses of cuDNN 9, as in dnn_statuses.h.
int dnn_create(size_t bytes, void **descriptor);
int dnn_set_tensor(struct dnn_tensor *tensor, int type, int count, const int *dimensions, const int *strides);
int dnn_set_format(struct dnn_tensor *tensor, int format, int type, int count, const int *dimensions);
int dnn_get_tensor(const struct dnn_tensor *tensor, int most, int *type, int *count, int *dimensions, int *strides);
int dnn_tensor_bytes(const struct dnn_tensor *tensor, size_t *bytes);
int dnn_set_convolution(struct dnn_convolution *convolution, int count, const int *pads, const int *strides,
                        const int *dilations, int mode, int type);
int dnn_get_convolution(const struct dnn_convolution *convolution, int most, int *count, int *pads, int *strides,
                        int *dilations, int *mode, int *type);
int dnn_convolved(const struct dnn_convolution *convolution, const struct dnn_tensor *input,
                  const struct dnn_tensor *filter, int count, int *dimensions);
int dnn_set_pooling(struct dnn_pooling *pooling, int mode, int nan, int count, const int *windows, const int *pads,
                    const int *strides);
int dnn_pooled(const struct dnn_pooling *pooling, const struct dnn_tensor *input, int count, int *dimensions);
int dnn_derive_normalization(struct dnn_tensor *derived, const struct dnn_tensor *input, int mode);

// Of a convolution by its first algorithm there is no workspace, by others one for the filter in single precision.
int dnn_workspace(const struct dnn_tensor *filter, int algorithm, size_t *bytes);
int dnn_algorithms(const struct dnn_tensor *filter, int most, int *count, struct dnn_performance *results);
