// The front end that answers as libcuda: modules, their functions and launching; libraries, which load the same images.

#define LIBCUDA
#include "surfaces/calls.h"

// A module is of a context, and a library of none ("context-independent": CUDA Driver API, "Library Management") until
// it is asked for what it has in the current one.
enum needs { MODULE, LIBRARY };

static int load(void **module, const void *image, enum needs needs, const char *function) {
    CALL(function);
    if (needs == MODULE) NEED_CONTEXT;
    uint64_t made;
    NEED(module && image, INVALID_VALUE);
    status = module_load(image, &made);
    if (!status) *module = (void *)made;
    ANSWER(status);
}

static int load_file(void **module, const char *path, const char *function) {
    CALL(function);
    NEED_CONTEXT;
    uint64_t made;
    NEED(module && path, INVALID_VALUE);
    status = module_load_file(path, &made);
    if (!status) *module = (void *)made;
    ANSWER(status);
}

static int unload(void *module, enum needs needs, const char *function) {
    CALL(function);
    if (needs == MODULE) NEED_CONTEXT;
    ANSWER(module_unload((uint64_t)module));
}

static int get_function(void **function, void *module, const char *name, enum needs needs, const char *called) {
    CALL(called);
    if (needs == MODULE) NEED_CONTEXT;
    uint64_t made;
    NEED(function && name, INVALID_VALUE);
    status = module_function((uint64_t)module, name, &made);
    if (!status) *function = (void *)made;
    ANSWER(status);
}

EXPORT int cuModuleLoadData(void **module, const void *image) {
    return load(module, image, MODULE, "cuModuleLoadData");
}
EXPORT int cuModuleLoadFatBinary(void **module, const void *image) {
    return load(module, image, MODULE, "cuModuleLoadFatBinary");
}
EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    (void)count, (void)options, (void)values;  // for a compiler that does not run
    return load(module, image, MODULE, "cuModuleLoadDataEx");
}
EXPORT int cuModuleLoad(void **module, const char *path) { return load_file(module, path, "cuModuleLoad"); }
EXPORT int cuModuleUnload(void *module) { return unload(module, MODULE, "cuModuleUnload"); }
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name) {
    return get_function(function, module, name, MODULE, "cuModuleGetFunction");
}

EXPORT int cuLibraryLoadData(void **library, const void *image, int *compiler, void **compiler_values, unsigned count,
                             int *options, void **values, unsigned values_count) {
    (void)compiler, (void)compiler_values, (void)count, (void)options, (void)values, (void)values_count;
    return load(library, image, LIBRARY, "cuLibraryLoadData");
}
EXPORT int cuLibraryUnload(void *library) { return unload(library, LIBRARY, "cuLibraryUnload"); }
EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
    return get_function(kernel, library, name, LIBRARY, "cuLibraryGetKernel");
}
EXPORT int cuKernelGetFunction(void **function, void *kernel) {
    CALL("cuKernelGetFunction");
    NEED_CONTEXT;
    NEED(function, INVALID_VALUE);
    NEED(module_has_function((uint64_t)kernel), INVALID_HANDLE);
    *function = kernel;  // one device's code is as good as another's where none runs
    ANSWER(OK);
}

#define LINK(name) cu##name
#define LINK_NAME(name) "cu" #name
#define VERSIONED(name) cu##name##_v2
#define VERSIONED_NAME(name) "cu" #name "_v2"
#include "surfaces/link_calls.inc"

// "One of the parameters dptr or bytes (not both) can be NULL in which case it is ignored" (cuModuleGetGlobal).
static int get_global(uint64_t *address, size_t *bytes, void *module, const char *name, bool of_library,
                      const char *function) {
    CALL(function);
    NEED_CONTEXT;
    uint64_t found, size_bytes;
    NEED((address || bytes) && name, INVALID_VALUE);
    status = module_variable((uint64_t)module, of_library, name, &found, &size_bytes, function);
    NEED(!status, context_answer(status));
    if (address) *address = found;
    if (bytes) *bytes = size_bytes;
    ANSWER(OK);
}

EXPORT int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module, const char *name) {
    return get_global(address, bytes, module, name, false, "cuModuleGetGlobal_v2");
}
EXPORT int cuLibraryGetGlobal(uint64_t *address, size_t *bytes, void *library, const char *name) {
    return get_global(address, bytes, library, name, true, "cuLibraryGetGlobal");
}

static int launch_function(const struct callee *callee, struct dim3 grid, struct dim3 block, void *handle,
                           const char *name) {
    CALL(name);
    NEED_STREAM(stream, handle);
    NEED(module_has_function(callee->function), INVALID_HANDLE);
    ANSWER(launch_by_driver(stream, grid, block, callee));
}

EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,
                          void **extra) {
    struct callee callee = {(uint64_t)function, NULL, {arguments, extra}, shared_bytes, false, false};
    return launch_function(&callee, (struct dim3){grid_x, grid_y, grid_z}, (struct dim3){block_x, block_y, block_z},
                           stream, "cuLaunchKernel");
}

EXPORT int cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                     void *stream, void **arguments) {
    struct callee callee = {(uint64_t)function, NULL, {arguments, NULL}, shared_bytes, .is_cooperative = true};
    return launch_function(&callee, (struct dim3){grid_x, grid_y, grid_z}, (struct dim3){block_x, block_y, block_z},
                           stream, "cuLaunchCooperativeKernel");
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function) {
    CALL("cuFuncGetAttribute");
    NEED_CONTEXT;
    NEED(value, INVALID_VALUE);
    ANSWER(needs_attribute((uint64_t)function, attribute, value));
}

EXPORT int cuFuncSetAttribute(void *function, int attribute, int value) {
    CALL("cuFuncSetAttribute");
    NEED_CONTEXT;
    NEED(module_has_function((uint64_t)function), INVALID_HANDLE);
    ANSWER(needs_allow((uint64_t)function, NULL, device_current(), attribute, value));
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared_bytes) {
    CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    NEED_CONTEXT;
    NEED(blocks, INVALID_VALUE);
    NEED(module_has_function((uint64_t)function), INVALID_HANDLE);
    ANSWER(needs_blocks((uint64_t)function, NULL, threads, shared_bytes, blocks));
}

EXPORT int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, size_t (*shared_bytes_of)(int),
                                            size_t shared_bytes, int limit) {
    CALL("cuOccupancyMaxPotentialBlockSize");
    NEED_CONTEXT;
    NEED(grid && block, INVALID_VALUE);
    NEED(module_has_function((uint64_t)function), INVALID_HANDLE);
    struct kernel_needs needs = needs_of((uint64_t)function, NULL);
    if (!limit || limit > needs.most_threads) limit = needs.most_threads;
    shared_bytes += (size_t)needs.shared_bytes;
    status = occupancy_size(shared_bytes, limit, grid, block);
    if (!status && shared_bytes_of) {
        int blocks = 0;
        for (; *block > 32; *block /= 2) {  // the largest block whose memory fits
            status = needs_blocks((uint64_t)function, NULL, *block, shared_bytes_of(*block), &blocks);
            if (status || blocks) break;
        }
    }
    ANSWER(status);
}

EXPORT int cuStreamGetCtx(void *handle, void **context) {
    CALL("cuStreamGetCtx");
    NEED_STREAM(stream, handle);
    NEED(context, INVALID_VALUE);
    *context = driver_handle(driver_context_of((uint64_t)handle, stream->device));
    ANSWER(OK);
}
