// The front end that answers as libcudart: libraries of device code, which CUDA 12.8 brought to the runtime, and
// kernels by handle. A library is a module that belongs to no device (surfaces/cuda_modules.c).

#define RUNTIME
#include "surfaces/calls.h"

EXPORT int cudaLibraryLoadData(void **library, const void *code, int *compiler, void **compiler_values, unsigned count,
                               int *options, void **values, unsigned values_count) {
    CALL("cudaLibraryLoadData");
    (void)compiler, (void)compiler_values, (void)count, (void)options, (void)values, (void)values_count;
    uint64_t made;
    NEED(library && code, INVALID_VALUE);
    status = module_load(code, &made);
    if (!status) *library = (void *)made;
    ANSWER(status);
}

EXPORT int cudaLibraryLoadFromFile(void **library, const char *path, int *compiler, void **compiler_values,
                                   unsigned count, int *options, void **values, unsigned values_count) {
    CALL("cudaLibraryLoadFromFile");
    (void)compiler, (void)compiler_values, (void)count, (void)options, (void)values, (void)values_count;
    uint64_t made;
    NEED(library && path, INVALID_VALUE);
    status = module_load_file(path, &made);
    if (!status) *library = (void *)made;
    ANSWER(status);
}

EXPORT int cudaLibraryUnload(void *library) {
    CALL("cudaLibraryUnload");
    ANSWER(module_unload((uint64_t)library));
}

// A launch takes it in the place of a function's address.
EXPORT int cudaLibraryGetKernel(void **kernel, void *library, const char *name) {
    CALL("cudaLibraryGetKernel");
    uint64_t made;
    NEED(kernel && name, INVALID_VALUE);
    status = module_function((uint64_t)library, name, &made);
    if (!status) *kernel = (void *)made;
    ANSWER(status);
}

EXPORT int cudaLibraryGetGlobal(void **address, size_t *bytes, void *library, const char *name) {
    CALL("cudaLibraryGetGlobal");
    uint64_t found, size_bytes;
    NEED((address || bytes) && name, INVALID_VALUE);
    status = module_variable((uint64_t)library, true, name, &found, &size_bytes, "cudaLibraryGetGlobal");
    NEED(!status, context_answer(status));
    if (address) *address = (void *)found;
    if (bytes) *bytes = size_bytes;
    ANSWER(OK);
}

// The handle of a client's own kernel, as __cudaGetKernel() gives it to compilers' code.
EXPORT int cudaGetKernel(const void **kernel, const void *function) {
    CALL("cudaGetKernel");
    NEED(kernel && function, INVALID_VALUE);
    *kernel = function;
    ANSWER(OK);
}

// And the one by which the driver's functions launch it.
EXPORT int cudaGetFuncBySymbol(void **function, const void *stub) {
    CALL("cudaGetFuncBySymbol");
    NEED(function && stub, INVALID_VALUE);
    uint64_t made;
    status = module_function_of_stub(stub, &made);
    if (!status) *function = (void *)made;
    ANSWER(status);
}
