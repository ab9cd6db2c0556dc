// What the files of the front end that answers as libnvidia-ml (NVML) share: its statuses, and how a function begins.
//
// Numbers, structures and what is answered when are those of NVIDIA's nvml.h (the wheels nvidia-nvml-dev have it). The
// functions work from nvmlInit to the last nvmlShutdown, for the machine of this process; they see what its runtime
// allocates, and no context is made.
#pragma once

#include "machine/export.h"
#include "machine/lock.h"
#include "management/management.h"

enum nvml {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_ARGUMENT_VERSION_MISMATCH = 25,
};

bool nvml_is_initialized(void);

// Copies a text to where a client has room for it, the NUL included.
enum nvml nvml_text(char *place, unsigned bytes, const char *text);

#define NVML_ANSWER(answer) return management_leave(answer)
#define NVML_NEED(condition, otherwise) \
    if (!(condition)) NVML_ANSWER(otherwise)
#define NVML_CALL() \
    lock_take(); \
    NVML_NEED(nvml_is_initialized(), NVML_UNINITIALIZED)
// Of a device, which it names `device`; `needed` is what else may not be NULL or wrong.
#define NVML_CALL_OF(handle, needed) \
    NVML_CALL();                     \
    unsigned device;                 \
    NVML_NEED(management_device(handle, &device) && (needed), NVML_INVALID_ARGUMENT)
