// What the parts of cuDNN have in common: its statuses, in the numbers of cuDNN 9, and what they are in cuDNN 8.
//
// They are those of cudnn_graph.h (9) and cudnn_ops_infer.h (8), which the wheels nvidia-cudnn have.
#pragma once

enum dnn_status {
    DNN_SUCCESS = 0,
    DNN_NOT_INITIALIZED = 1001,
    DNN_WRONG = 2000,
    DNN_NULL = 2002,
    DNN_NOT_FINAL = 2004,
    DNN_UNSUPPORTED = 3000,
    DNN_FAILED = 4000,
    DNN_NO_MEMORY = 4003,
};

static inline int dnn_status_of_eight(int status) {
    switch (status / 1000) {
        case 0: return 0;
        case 1: return 1;
        case 2: return 3;
        case 3: return 9;
        default: return status == DNN_NO_MEMORY ? 2 : 4;
    }
}
