// libNVVM, as clients load it where kernels run: the vendor's own, but for LTO-IR, in whose place it gives PTX.
// Signatures and statuses are those of nvvm.h of CUDA 12.9 and 13.0.
#include <stdlib.h>
#include <string.h>

#include "compilers/toolkit.h"
#include "machine/export.h"

enum { OUT_OF_MEMORY = 1, PROGRAM_CREATION_FAILURE, INVALID_INPUT = 4 };

static void *vendors(const char *name) { return toolkit_function(TOOLKIT_NVVM, name); }

#define PASS(name, parameters, arguments) \
    EXPORT int simulated_##name parameters { \
        int(*function) parameters = vendors(#name); \
        return function ? function arguments : PROGRAM_CREATION_FAILURE; \
    }

PASS(nvvmVersion, (int *major, int *minor), (major, minor))
PASS(nvvmLLVMVersion, (const char *architecture, int *major), (architecture, major))
PASS(nvvmIRVersion, (int *major, int *minor, int *debug_major, int *debug_minor),
     (major, minor, debug_major, debug_minor))
PASS(nvvmCreateProgram, (void **program), (program))
PASS(nvvmDestroyProgram, (void **program), (program))
PASS(nvvmAddModuleToProgram, (void *program, const char *code, size_t bytes, const char *name),
     (program, code, bytes, name))
PASS(nvvmLazyAddModuleToProgram, (void *program, const char *code, size_t bytes, const char *name),
     (program, code, bytes, name))
PASS(nvvmVerifyProgram, (void *program, int count, const char **options), (program, count, options))
PASS(nvvmGetCompiledResultSize, (void *program, size_t *bytes), (program, bytes))
PASS(nvvmGetCompiledResult, (void *program, char *place), (program, place))
PASS(nvvmGetProgramLogSize, (void *program, size_t *bytes), (program, bytes))
PASS(nvvmGetProgramLog, (void *program, char *place), (program, place))
PASS(nvvmDisableConcurrentAPI, (void), ())

EXPORT const char *simulated_nvvmGetErrorString(int status) {
    const char *(*function)(int) = vendors("nvvmGetErrorString");
    return function ? function(status) : "libNVVM is not installed";
}

EXPORT int simulated_nvvmCompileProgram(void *program, int count, const char **options) {
    int (*function)(void *, int, const char **) = vendors("nvvmCompileProgram");
    if (!function) return PROGRAM_CREATION_FAILURE;
    if (count < 0 || (count && !options)) return INVALID_INPUT;
    const char **kept = calloc((size_t)count + 1, sizeof *kept);
    int kept_count = 0;
    if (!kept) return OUT_OF_MEMORY;
    for (int i = 0; i < count; i++)
        if (strcmp(options[i], "-gen-lto") && strcmp(options[i], "--gen-lto")) kept[kept_count++] = options[i];
    int status = function(program, kept_count, kept);
    free(kept);
    return status;
}
