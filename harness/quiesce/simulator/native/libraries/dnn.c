// Handles of cuDNN 8, cuDNN 9 and MIOpen.
//
// Statuses and signatures are those of cudnn_ops_infer.h (8) and cudnn_graph.h (9), which the wheels nvidia-cudnn have,
// and miopen.h. cuDNN numbered its statuses and its releases anew with version 9; its functions are here twice, and
// vendor_libraries.py says which of them a library leads to.

#include "libraries/dnn_statuses.h"

#include <stdlib.h>

#include "libraries/computed.h"
#include "libraries/dnn_descriptors.h"
#include "libraries/dnn_graph.h"
#include "machine/device.h"

// The first setting of a handle is the number of its statuses, for quiesce.libraries.dnn_tensors.
static const struct library EIGHT = {THING_DNN_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 4,
                                     .unsupported = 9, .first_values = {8}};
static const struct library NINE = {THING_DNN_HANDLE, .no_object = 1001, .wrong = 2000, .no_memory = 4004,
                                    .failed = 4000, .unsupported = 3000, .first_values = {9}};
static const struct releases EIGHT_RELEASES = {1000, 100, {{8, 9, 7}}, {{8, 9, 7}}, {{8, 9, 7}}};
static const struct releases NINE_RELEASES = {10000, 100, {{9, 5, 1}}, {{9, 10, 2}}, {{9, 12, 0}}};

#undef SIMULATED
#undef COMPUTED
#define SIMULATED(name) simulated_8_##name
#define COMPUTED(name) computed_8_##name
#define DNN EIGHT
#define OF(status) dnn_status_of_eight(status)
CREATE(EIGHT, cudnnCreate)
DESTROY(EIGHT, cudnnDestroy)
SET_STREAM(EIGHT, cudnnSetStream)
GET_STREAM(EIGHT, cudnnGetStream)
VERSION_SIZE(cudnnGetVersion, EIGHT_RELEASES)
PROPERTY(EIGHT, cudnnGetProperty, EIGHT_RELEASES)

#include "libraries/dnn_calls.inc"

// cuDNN 8 is two libraries for each purpose, to infer and to train.
#define CHECK(name) \
    EXPORT int COMPUTED(name)(void) { return DNN_SUCCESS; }
CHECK(cudnnOpsInferVersionCheck)
CHECK(cudnnOpsTrainVersionCheck)
CHECK(cudnnCnnInferVersionCheck)
CHECK(cudnnCnnTrainVersionCheck)

#undef SIMULATED
#undef COMPUTED
#undef DNN
#undef OF
#define SIMULATED(name) simulated_9_##name
#define COMPUTED(name) computed_9_##name
#define DNN NINE
#define OF(status) (status)
CREATE(NINE, cudnnCreate)
DESTROY(NINE, cudnnDestroy)
SET_STREAM(NINE, cudnnSetStream)
GET_STREAM(NINE, cudnnGetStream)
VERSION_SIZE(cudnnGetVersion, NINE_RELEASES)
PROPERTY(NINE, cudnnGetProperty, NINE_RELEASES)

#include "libraries/dnn_calls.inc"

CHECK(cudnnGraphVersionCheck)
CHECK(cudnnOpsVersionCheck)
CHECK(cudnnCnnVersionCheck)

EXPORT void COMPUTED(cudnnGetLastErrorString)(char *message, size_t bytes) {
    if (message && bytes) *message = 0;  // nothing is kept
}

#undef SIMULATED
#define SIMULATED(name) simulated_##name
EXPORT size_t SIMULATED(cudnnGetCudartVersion)(void) { return (size_t)device_release(); }

static const struct library MIOPEN = {THING_DNN_HANDLE, .no_object = 3, .wrong = 3, .no_memory = 4, .failed = 5};
static const struct releases MIOPEN_RELEASES = {1000000, 1000, {{2, 20, 0}}, {{3, 4, 0}}, {{3, 5, 0}}};

CREATE(MIOPEN, miopenCreate)
DESTROY(MIOPEN, miopenDestroy)
SET_STREAM(MIOPEN, miopenSetStream)
GET_STREAM(MIOPEN, miopenGetStream)

FUNCTION(miopenCreateWithStream)(void **handle, void *stream) {
    int answer = object_create("miopenCreateWithStream", &MIOPEN, handle);
    return answer ? answer : object_set_stream("miopenCreateWithStream", &MIOPEN, *handle, stream);
}

FUNCTION(miopenGetVersion)(size_t *major, size_t *minor, size_t *patch) {
    size_t *places[] = {major, minor, patch};
    for (int part = 0; part < 3; part++) {
        int value;
        if (!places[part]) continue;
        int answer = release_part(&MIOPEN, &MIOPEN_RELEASES, part, &value);
        if (answer) return answer;
        *places[part] = (size_t)value;
    }
    return 0;
}
