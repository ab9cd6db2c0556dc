// The front end that answers as libamdhip64: modules, their functions, and what HIP alone has for launching.

#include "surfaces/calls.h"

static struct stream *find_stream(void *handle) { return stream_find((uint64_t)handle, device_current(), false); }

EXPORT int hipModuleLoadData(void **module, const void *image) {
    CALL("hipModuleLoadData");
    uint64_t made;
    NEED(module && image, INVALID_VALUE);
    status = module_load(image, &made);
    if (!status) *module = (void *)made;
    ANSWER(status);
}

EXPORT int hipModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    CALL("hipModuleLoadDataEx");
    (void)count, (void)options, (void)values;  // for a compiler that does not run
    uint64_t made;
    NEED(module && image, INVALID_VALUE);
    status = module_load(image, &made);
    if (!status) *module = (void *)made;
    ANSWER(status);
}

EXPORT int hipModuleLoad(void **module, const char *path) {
    CALL("hipModuleLoad");
    uint64_t made;
    NEED(module && path, INVALID_VALUE);
    status = module_load_file(path, &made);
    if (!status) *module = (void *)made;
    ANSWER(status);
}

EXPORT int hipModuleUnload(void *module) {
    CALL("hipModuleUnload");
    ANSWER(module_unload((uint64_t)module));
}

EXPORT int hipModuleGetFunction(void **function, void *module, const char *name) {
    CALL("hipModuleGetFunction");
    uint64_t made;
    NEED(function && name, INVALID_VALUE);
    status = module_function((uint64_t)module, name, &made);
    if (!status) *function = (void *)made;
    ANSWER(status);
}

EXPORT int hipModuleGetGlobal(void **address, size_t *bytes, void *module, const char *name) {
    CALL("hipModuleGetGlobal");
    uint64_t found, size_bytes;
    NEED(name, INVALID_VALUE);
    status = module_variable((uint64_t)module, false, name, &found, &size_bytes, "hipModuleGetGlobal");
    NEED(!status, context_answer(status));
    if (address) *address = (void *)found;  // "Both … are optional" (hipModuleGetGlobal)
    if (bytes) *bytes = size_bytes;
    ANSWER(OK);
}

#define LINK(name) hip##name
#define LINK_NAME(name) "hip" #name
#define VERSIONED LINK
#define VERSIONED_NAME LINK_NAME
#include "surfaces/link_calls.inc"

static int launch_function(void *function, struct dim3 grid, struct dim3 block, void *handle, const char *name) {
    CALL(name);
    struct stream *stream = find_stream(handle);
    NEED(module_has_function((uint64_t)function) && stream, INVALID_HANDLE);
    ANSWER(launch(stream, grid, block, NULL));  // HIP's kernels do not compute
}

EXPORT int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
                                 void **arguments, void **extra) {
    (void)shared_bytes, (void)arguments, (void)extra;
    return launch_function(function, (struct dim3){grid_x, grid_y, grid_z}, (struct dim3){block_x, block_y, block_z},
                           stream, "hipModuleLaunchKernel");
}

EXPORT int hipModuleLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                            void *stream, void **arguments) {
    (void)shared_bytes, (void)arguments;
    return launch_function(function, (struct dim3){grid_x, grid_y, grid_z}, (struct dim3){block_x, block_y, block_z},
                           stream, "hipModuleLaunchCooperativeKernel");
}

// Both record events around a kernel; "hipExtLaunchKernel … will not be explicitly recorded" only of nulls.
static enum status record(void *handle, struct stream *stream) {
    struct event *event = handle ? event_find((uint64_t)handle) : NULL;
    return !handle ? OK : event ? event_record(event, stream) : INVALID_HANDLE;
}

static enum status launch_between(struct stream *stream, struct dim3 grid, struct dim3 block, void *start, void *stop) {
    enum status status = record(start, stream);
    if (!status) status = launch(stream, grid, block, NULL);
    return status ? status : record(stop, stream);
}

// Its grid is given in threads.
EXPORT int hipExtModuleLaunchKernel(void *function, unsigned threads_x, unsigned threads_y, unsigned threads_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z, size_t shared_bytes,
                                    void *handle, void **arguments, void **extra, void *start, void *stop,
                                    unsigned flags) {
    CALL("hipExtModuleLaunchKernel");
    (void)shared_bytes, (void)arguments, (void)extra, (void)flags;
    struct stream *stream = find_stream(handle);
    NEED(module_has_function((uint64_t)function) && stream, INVALID_HANDLE);
    NEED(block_x && block_y && block_z, INVALID_VALUE);
    struct dim3 grid = {(threads_x + block_x - 1) / block_x, (threads_y + block_y - 1) / block_y,
                        (threads_z + block_z - 1) / block_z};
    ANSWER(launch_between(stream, grid, (struct dim3){block_x, block_y, block_z}, start, stop));
}

EXPORT int hipExtLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
                              size_t shared_bytes, void *handle, void *start, void *stop, int flags) {
    CALL("hipExtLaunchKernel");
    (void)shared_bytes, (void)arguments, (void)flags;
    struct stream *stream = find_stream(handle);
    NEED(stream, INVALID_HANDLE);
    NEED(function, INVALID_VALUE);
    ANSWER(launch_between(stream, grid, block, start, stop));
}

EXPORT int hipFuncGetAttribute(int *value, int attribute, void *function) {
    CALL("hipFuncGetAttribute");
    NEED(value, INVALID_VALUE);
    ANSWER(module_attribute((uint64_t)function, attribute, value));
}

EXPORT int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                              size_t shared_bytes) {
    CALL("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
    NEED(blocks, INVALID_VALUE);
    NEED(module_has_function((uint64_t)function), INVALID_HANDLE);
    ANSWER(occupancy_blocks(threads, shared_bytes, blocks));
}

EXPORT int hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, size_t shared_bytes,
                                                   int limit) {
    CALL("hipModuleOccupancyMaxPotentialBlockSize");
    NEED(grid && block, INVALID_VALUE);
    NEED(module_has_function((uint64_t)function), INVALID_HANDLE);
    ANSWER(occupancy_size(shared_bytes, limit, grid, block));
}

EXPORT int hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *function, size_t shared_bytes,
                                             int limit) {
    CALL("hipOccupancyMaxPotentialBlockSize");
    NEED(grid && block && function, INVALID_VALUE);
    ANSWER(occupancy_size(shared_bytes, limit, grid, block));
}

// Managed variables of a client's own have memory as soon as they are registered (hip_platform.cpp).
static int manage(const struct registered_binary *binary) {
    CALL("__hipRegisterManagedVar");
    bool unclear;
    ANSWER(symbols_manage(binary, &unclear));
}
EXPORT void __hipRegisterManagedVar(void *handle, void **variable, void *initial, const char *name, size_t size_bytes,
                                    unsigned alignment) {
    (void)alignment;  // any memory is aligned to more
    symbol_register_managed(handle, variable, name, size_bytes, initial);
    manage(handle);
}

// ROCm 5 exports these two under their C++ names.
int hipCreateSurfaceObject(uint64_t *object, const void *resource);
int hipDestroySurfaceObject(uint64_t object);
EXPORT int _Z22hipCreateSurfaceObjectPyPK15hipResourceDesc(uint64_t *object, const void *resource) {
    return hipCreateSurfaceObject(object, resource);
}
EXPORT int _Z23hipDestroySurfaceObjecty(uint64_t object) { return hipDestroySurfaceObject(object); }

// Profilers are told where to look; none looks.
EXPORT int hipProfilerStart(void) {
    CALL("hipProfilerStart");
    ANSWER(OK);
}
EXPORT int hipProfilerStop(void) {
    CALL("hipProfilerStop");
    ANSWER(OK);
}
