// What a call can answer. CUDA's and HIP's runtimes share these numbers (cudaError_t, hipError_t; CUDA's driver too).
#pragma once

#include <stdbool.h>

enum status {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,  // also the answer in a child of fork(): a device context is not inherited
    UNLOADING = 4,
    INVALID_CONFIGURATION = 9,
    INVALID_PITCH = 12,
    INVALID_SYMBOL = 13,
    INVALID_COPY_DIRECTION = 21,
    DEVICES_UNAVAILABLE = 46,
    INVALID_DEVICE_FUNCTION = 98,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    UNSUPPORTED_LIMIT = 215,
    CONTEXT_IN_USE = 216,
    INVALID_PTX = 218,
    FILE_NOT_FOUND = 301,
    OPERATING_SYSTEM = 304,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_TIMEOUT = 702,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    PEER_ACCESS_NOT_ENABLED = 705,
    CONTEXT_IS_DESTROYED = 709,
    ASSERTED = 710,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    HARDWARE_STACK_ERROR = 714,
    ILLEGAL_INSTRUCTION = 715,
    MISALIGNED_ADDRESS = 716,
    INVALID_ADDRESS_SPACE = 717,
    INVALID_PROGRAM_COUNTER = 718,
    LAUNCH_FAILURE = 719,
    COOPERATIVE_TOO_LARGE = 720,
    NOT_PERMITTED = 800,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_MERGE = 902,
    CAPTURE_UNMATCHED = 903,
    CAPTURE_UNJOINED = 904,
    CAPTURE_ISOLATION = 905,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    CAPTURE_WRONG_THREAD = 908,
    GRAPH_UPDATE_FAILURE = 910,
    UNKNOWN = 999,
};

// The name of the enumerator in that flavour, and the sentence that its library has for it; both static.
const char *status_name(int status, bool hip);
const char *status_text(int status, bool hip);
