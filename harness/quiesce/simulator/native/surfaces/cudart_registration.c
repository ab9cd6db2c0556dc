// The front end that answers as libcudart: a client's own device code, beside what HIP has too (shared_calls.inc). Its
// compiler's code calls these (crt/host_runtime.h).

#define RUNTIME
#include "surfaces/calls.h"

EXPORT void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

// Managed variables of a client's own. Code that a compiler wrote calls __cudaInitModule before it uses the first one.
EXPORT void __cudaRegisterManagedVar(void **handle, void **variable, char *address, const char *name, int external,
                                     size_t size_bytes, int constant, int global) {
    (void)address, (void)external, (void)constant, (void)global;
    symbol_register_managed((struct registered_binary *)handle, variable, name, size_bytes, NULL);
}

static int init_module(const struct registered_binary *binary) {
    CALL("__cudaInitModule");
    bool unclear;
    status = symbols_manage(binary, &unclear);
    if (unclear) unsimulated("the initial value of a __managed__ variable", FIRST_VALUE_IS_UNKNOWN);  // it is zero
    ANSWER(status);
}
EXPORT char __cudaInitModule(void **handle) { return !init_module((struct registered_binary *)handle); }

// Variables and functions of the host's that device code uses where they are: no kernel runs, and they stay the host's.
EXPORT void __cudaRegisterHostVar(void **handle, const char *name, char *variable, size_t size_bytes) {
    (void)handle, (void)name, (void)variable, (void)size_bytes;
}
EXPORT void __cudaRegisterUnifiedTable(void **handle, void *functions, size_t functions_bytes, void *data,
                                       size_t data_bytes) {
    (void)handle, (void)functions, (void)functions_bytes, (void)data, (void)data_bytes;
}
// Textures of CUDA 11, which nothing reads: what would bind memory to one fails by name.
EXPORT void __cudaRegisterTexture(void **handle, const void *texture, const void **address, const char *name,
                                  int dimensions, int normalised, int external) {
    (void)handle, (void)texture, (void)address, (void)name, (void)dimensions, (void)normalised, (void)external;
}
EXPORT void __cudaRegisterSurface(void **handle, const void *surface, const void **address, const char *name,
                                  int dimensions, int external) {
    (void)handle, (void)surface, (void)address, (void)name, (void)dimensions, (void)external;
}
