// The front end that answers as libcuda: what CUDA 12 brought for kernels, beside cuda_modules.c.

#define LIBCUDA
#include "ledger/handle.h"
#include "surfaces/calls.h"

struct launch_configuration {  // CUlaunchConfig
    struct dim3 grid, block;
    unsigned shared_bytes;
    void *stream;
    const void *attributes;
    unsigned attributes_count;
};

EXPORT int cuLaunchKernelEx(const struct launch_configuration *configuration, void *function, void **arguments,
                            void **extra) {
    CALL("cuLaunchKernelEx");
    NEED(configuration, INVALID_VALUE);
    NEED_STREAM(stream, configuration->stream);
    NEED(module_has_function((uint64_t)function), INVALID_HANDLE);
    struct callee callee = {(uint64_t)function, NULL, {arguments, extra}, configuration->shared_bytes, false, false};
    launch_attributes(&callee, configuration->attributes, configuration->attributes_count);
    ANSWER(launch_by_driver(stream, configuration->grid, configuration->block, &callee));
}

EXPORT int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) {
    CALL("cuKernelGetAttribute");
    NEED(value, INVALID_VALUE);
    NEED(device_exists(device), INVALID_DEVICE);
    ANSWER(needs_attribute((uint64_t)kernel, attribute, value));
}

EXPORT int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
    CALL("cuKernelSetAttribute");
    NEED(device_exists(device), INVALID_DEVICE);
    NEED(module_has_function((uint64_t)kernel), INVALID_HANDLE);
    ANSWER(needs_allow((uint64_t)kernel, NULL, (unsigned)device, attribute, value));
}

EXPORT int cuFuncSetCacheConfig(void *function, int configuration) {
    CALL("cuFuncSetCacheConfig");
    NEED_CONTEXT;
    NEED(module_has_function((uint64_t)function), INVALID_HANDLE);
    ANSWER(configuration >= 0 && configuration <= 3 ? OK : INVALID_VALUE);
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *function, int threads,
                                                                size_t shared_bytes, unsigned flags) {
    CALL("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags");
    NEED_CONTEXT;
    NEED(blocks && flags <= 1, INVALID_VALUE);
    NEED(module_has_function((uint64_t)function), INVALID_HANDLE);
    ANSWER(needs_blocks((uint64_t)function, NULL, threads, shared_bytes, blocks));
}

EXPORT int cuLibraryLoadFromFile(void **library, const char *path, int *compiler, void **compiler_values,
                                 unsigned count, int *options, void **values, unsigned values_count) {
    CALL("cuLibraryLoadFromFile");
    (void)compiler, (void)compiler_values, (void)count, (void)options, (void)values, (void)values_count;
    uint64_t made;
    NEED(library && path, INVALID_VALUE);
    status = module_load_file(path, &made);
    if (!status) *library = (void *)made;
    ANSWER(status);
}

EXPORT int cuLibraryGetModule(void **module, void *library) {
    CALL("cuLibraryGetModule");
    NEED_CONTEXT;
    NEED(module, INVALID_VALUE);
    NEED(handle_find(THING_MODULE, (uint64_t)library), INVALID_HANDLE);
    *module = library;  // both are the same image here
    ANSWER(OK);
}

EXPORT int cuModuleGetLoadingMode(int *mode) {
    CALL("cuModuleGetLoadingMode");
    enum { LAZY = 2 };  // the default since CUDA 12
    NEED(mode, INVALID_VALUE);
    *mode = LAZY;
    ANSWER(OK);
}
