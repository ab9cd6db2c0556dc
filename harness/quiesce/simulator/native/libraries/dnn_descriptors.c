#include "libraries/dnn_descriptors.h"

#include <stdlib.h>
#include <string.h>

#include "libraries/dnn_statuses.h"

enum { ROWS, CHANNELS_LAST, FORMATS };  // cudnnTensorFormat_t
enum { FLOAT_TYPE, DOUBLE_TYPE };       // cudnnDataType_t
static const unsigned char BYTES_OF[] = {4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1};

int dnn_create(size_t bytes, void **descriptor) {
    if (!descriptor) return DNN_NULL;
    *descriptor = calloc(1, bytes);
    return *descriptor ? DNN_SUCCESS : DNN_NO_MEMORY;
}

static void copy(int *to, const int *from, int count) {
    if (to && count > 0) memcpy(to, from, (size_t)count * sizeof *to);
}

// -- tensors ---------------------------------------------------------------------------------------------------------

int dnn_set_tensor(struct dnn_tensor *tensor, int type, int count, const int *dimensions, const int *strides) {
    if (!tensor || !dimensions || !strides) return DNN_NULL;
    if (count < 1 || type < 0) return DNN_WRONG;
    if (count > DNN_DIMENSIONS_MAX || type >= (int)sizeof BYTES_OF) return DNN_UNSUPPORTED;
    for (int i = 0; i < count; i++)
        if (dimensions[i] < 1) return DNN_WRONG;
    *tensor = (struct dnn_tensor){.type = type, .count = count};
    copy(tensor->dimensions, dimensions, count);
    copy(tensor->strides, strides, count);
    return DNN_SUCCESS;
}

int dnn_set_format(struct dnn_tensor *tensor, int format, int type, int count, const int *dimensions) {
    int strides[DNN_DIMENSIONS_MAX] = {0}, stride = 1;
    if (!dimensions) return DNN_NULL;
    if (count < 1 || format < 0) return DNN_WRONG;
    if (count > DNN_DIMENSIONS_MAX || format >= FORMATS) return DNN_UNSUPPORTED;
    bool is_last = format == CHANNELS_LAST && count > 1;
    if (is_last) {
        strides[1] = 1;
        stride = dimensions[1];
    }
    for (int i = count - 1; i >= 0; i--) {
        if (is_last && i == 1) continue;
        strides[i] = stride;
        stride *= dimensions[i];
    }
    int status = dnn_set_tensor(tensor, type, count, dimensions, strides);
    if (!status) tensor->format = format;
    return status;
}

int dnn_get_tensor(const struct dnn_tensor *tensor, int most, int *type, int *count, int *dimensions, int *strides) {
    if (!tensor) return DNN_NULL;
    if (type) *type = tensor->type;
    if (count) *count = tensor->count;
    int shown = most < tensor->count ? most : tensor->count;
    copy(dimensions, tensor->dimensions, shown);
    copy(strides, tensor->strides, shown);
    return DNN_SUCCESS;
}

int dnn_tensor_bytes(const struct dnn_tensor *tensor, size_t *bytes) {
    if (!tensor || !bytes) return DNN_NULL;
    size_t last = 0;
    for (int i = 0; i < tensor->count; i++) last += (size_t)(tensor->dimensions[i] - 1) * (size_t)tensor->strides[i];
    *bytes = (last + 1) * BYTES_OF[tensor->type];
    return DNN_SUCCESS;
}

// "The data type … is float" but for double precision (cudnnDeriveBNTensorDescriptor).
int dnn_derive_normalization(struct dnn_tensor *derived, const struct dnn_tensor *input, int mode) {
    int dimensions[DNN_DIMENSIONS_MAX] = {0};
    if (!derived || !input) return DNN_NULL;
    for (int i = 0; i < input->count; i++) {
        bool is_one = mode ? i != 1 : i == 0;
        dimensions[i] = is_one ? 1 : input->dimensions[i];
    }
    int type = input->type == DOUBLE_TYPE ? DOUBLE_TYPE : FLOAT_TYPE;
    return dnn_set_format(derived, ROWS, type, input->count, dimensions);
}

// -- convolutions ----------------------------------------------------------------------------------------------------

int dnn_set_convolution(struct dnn_convolution *convolution, int count, const int *pads, const int *strides,
                        const int *dilations, int mode, int type) {
    if (!convolution || !pads || !strides || !dilations) return DNN_NULL;
    if (count < 1 || mode < 0 || mode > 1) return DNN_WRONG;
    if (count > DNN_DIMENSIONS_MAX - 2) return DNN_UNSUPPORTED;
    for (int i = 0; i < count; i++)
        if (pads[i] < 0 || strides[i] < 1 || dilations[i] < 1) return DNN_WRONG;
    *convolution = (struct dnn_convolution){.count = count, .mode = mode, .type = type, .groups = 1};
    copy(convolution->pads, pads, count);
    copy(convolution->strides, strides, count);
    copy(convolution->dilations, dilations, count);
    return DNN_SUCCESS;
}

int dnn_get_convolution(const struct dnn_convolution *convolution, int most, int *count, int *pads, int *strides,
                        int *dilations, int *mode, int *type) {
    if (!convolution) return DNN_NULL;
    int shown = most < convolution->count ? most : convolution->count;
    if (count) *count = convolution->count;
    if (mode) *mode = convolution->mode;
    if (type) *type = convolution->type;
    copy(pads, convolution->pads, shown);
    copy(strides, convolution->strides, shown);
    copy(dilations, convolution->dilations, shown);
    return DNN_SUCCESS;
}

// "1 + (inputDim + 2*pad - (((filterDim-1)*dilation)+1)) / convolutionStride".
int dnn_convolved(const struct dnn_convolution *convolution, const struct dnn_tensor *input,
                  const struct dnn_tensor *filter, int count, int *dimensions) {
    if (!convolution || !input || !filter || !dimensions) return DNN_NULL;
    if (count != input->count || count != filter->count || count != convolution->count + 2) return DNN_WRONG;
    if (input->dimensions[1] != filter->dimensions[1] * convolution->groups) return DNN_WRONG;
    dimensions[0] = input->dimensions[0];
    dimensions[1] = filter->dimensions[0];
    for (int i = 0; i < convolution->count; i++) {
        int window = (filter->dimensions[i + 2] - 1) * convolution->dilations[i] + 1;
        int room = input->dimensions[i + 2] + 2 * convolution->pads[i] - window;
        if (room < 0) return DNN_WRONG;
        dimensions[i + 2] = 1 + room / convolution->strides[i];
    }
    return DNN_SUCCESS;
}

int dnn_workspace(const struct dnn_tensor *filter, int algorithm, size_t *bytes) {
    if (!filter || !bytes) return DNN_NULL;
    *bytes = algorithm ? sizeof(float) : 0;
    for (int i = 0; i < filter->count; i++) *bytes *= (size_t)filter->dimensions[i];
    return DNN_SUCCESS;
}

int dnn_algorithms(const struct dnn_tensor *filter, int most, int *count, struct dnn_performance *results) {
    enum { ALGORITHMS = 2, DETERMINISTIC = 1 };
    if (!filter || !count || !results) return DNN_NULL;
    if (most < 1) return DNN_WRONG;
    *count = most < ALGORITHMS ? most : ALGORITHMS;
    for (int i = 0; i < *count; i++) {
        results[i] = (struct dnn_performance){
            .algorithm = ALGORITHMS - 1 - i, .time = 1.0f + (float)i, .determinism = DETERMINISTIC};
        dnn_workspace(filter, results[i].algorithm, &results[i].memory);
    }
    return DNN_SUCCESS;
}

// -- pooling ---------------------------------------------------------------------------------------------------------

int dnn_set_pooling(struct dnn_pooling *pooling, int mode, int nan, int count, const int *windows, const int *pads,
                    const int *strides) {
    enum { MODES = 4 };
    if (!pooling || !windows || !pads || !strides) return DNN_NULL;
    if (count < 1 || mode < 0 || mode >= MODES) return DNN_WRONG;
    if (count > DNN_DIMENSIONS_MAX - 2) return DNN_UNSUPPORTED;
    for (int i = 0; i < count; i++)
        if (windows[i] < 1 || strides[i] < 1 || pads[i] < 0) return DNN_WRONG;
    *pooling = (struct dnn_pooling){.mode = mode, .nan = nan, .count = count};
    copy(pooling->windows, windows, count);
    copy(pooling->pads, pads, count);
    copy(pooling->strides, strides, count);
    return DNN_SUCCESS;
}

// "1 + (inputDim + 2*padding - windowDim) / poolingStride".
int dnn_pooled(const struct dnn_pooling *pooling, const struct dnn_tensor *input, int count, int *dimensions) {
    if (!pooling || !input || !dimensions) return DNN_NULL;
    if (count != input->count || count != pooling->count + 2) return DNN_WRONG;
    copy(dimensions, input->dimensions, 2);
    for (int i = 0; i < pooling->count; i++) {
        int room = input->dimensions[i + 2] + 2 * pooling->pads[i] - pooling->windows[i];
        if (room < 0) return DNN_WRONG;
        dimensions[i + 2] = 1 + room / pooling->strides[i];
    }
    return DNN_SUCCESS;
}
