// The front end that answers as libcuda: launches as CUDA 3 had them, which pycuda still makes. "Execution Control
// [DEPRECATED]" of the CUDA Driver API has what each function does.

#define LIBCUDA
#include <string.h>

#include "code/prepared.h"
#include "surfaces/calls.h"

#define OF(function)                                                     \
    NEED(module_has_function((uint64_t)(function)), INVALID_HANDLE);     \
    struct prepared *prepared = prepared_of((uint64_t)(function));       \
    NEED(prepared, OUT_OF_MEMORY)

EXPORT int cuFuncSetBlockShape(void *function, int x, int y, int z) {
    CALL("cuFuncSetBlockShape");
    NEED_CONTEXT;
    OF(function);
    NEED(x > 0 && y > 0 && z > 0, INVALID_VALUE);
    memcpy(prepared->block, (uint32_t[]){(uint32_t)x, (uint32_t)y, (uint32_t)z}, sizeof prepared->block);
    ANSWER(OK);
}

EXPORT int cuFuncSetSharedSize(void *function, unsigned bytes) {
    CALL("cuFuncSetSharedSize");
    NEED_CONTEXT;
    OF(function);
    prepared->shared_bytes = bytes;
    ANSWER(OK);
}

EXPORT int cuParamSetSize(void *function, unsigned bytes) {
    CALL("cuParamSetSize");
    NEED_CONTEXT;
    OF(function);
    NEED(bytes <= PREPARED_BYTES_MAX, INVALID_VALUE);
    prepared->bytes = bytes;
    ANSWER(OK);
}

static int set_parameter(void *function, int offset, const void *value, unsigned bytes, const char *called) {
    CALL(called);
    NEED_CONTEXT;
    OF(function);
    NEED(offset >= 0 && value, INVALID_VALUE);
    NEED(offset <= PREPARED_BYTES_MAX && bytes <= PREPARED_BYTES_MAX - (unsigned)offset, INVALID_VALUE);
    memcpy(prepared->parameters + offset, value, bytes);
    ANSWER(OK);
}

EXPORT int cuParamSeti(void *function, int offset, unsigned value) {
    return set_parameter(function, offset, &value, sizeof value, "cuParamSeti");
}
EXPORT int cuParamSetf(void *function, int offset, float value) {
    return set_parameter(function, offset, &value, sizeof value, "cuParamSetf");
}
EXPORT int cuParamSetv(void *function, int offset, void *value, unsigned bytes) {
    return set_parameter(function, offset, value, bytes, "cuParamSetv");
}

static int launch_prepared(void *function, int width, int height, void *handle, const char *called) {
    CALL(called);
    NEED_STREAM(stream, handle);
    OF(function);
    NEED(width > 0 && height > 0, INVALID_VALUE);
    enum { END, BUFFER, BUFFER_SIZE };  // CU_LAUNCH_PARAM_…
    size_t bytes = prepared->bytes;
    void *extra[] = {(void *)BUFFER, prepared->parameters, (void *)BUFFER_SIZE, &bytes, (void *)END};
    struct callee callee = {(uint64_t)function, NULL, {NULL, extra}, prepared->shared_bytes, false, false};
    struct dim3 grid = {(uint32_t)width, (uint32_t)height, 1};
    struct dim3 block = {prepared->block[0], prepared->block[1], prepared->block[2]};
    ANSWER(launch_by_driver(stream, grid, block, &callee));
}

EXPORT int cuLaunch(void *function) { return launch_prepared(function, 1, 1, NULL, "cuLaunch"); }
EXPORT int cuLaunchGrid(void *function, int width, int height) {
    return launch_prepared(function, width, height, NULL, "cuLaunchGrid");
}
EXPORT int cuLaunchGridAsync(void *function, int width, int height, void *stream) {
    return launch_prepared(function, width, height, stream, "cuLaunchGridAsync");
}
