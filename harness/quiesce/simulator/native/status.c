#include "status.h"

#include <stddef.h>

static const struct {
    int number;
    const char *cuda;
    const char *hip;
    const char *text;
} STATUSES[] = {
    {OK, "cudaSuccess", "hipSuccess", "no error"},
    {INVALID_VALUE, "cudaErrorInvalidValue", "hipErrorInvalidValue", "invalid argument"},
    {OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "hipErrorOutOfMemory", "out of memory"},
    {NOT_INITIALIZED, "cudaErrorInitializationError", "hipErrorNotInitialized", "initialization error"},
    {UNLOADING, "cudaErrorCudartUnloading", "hipErrorDeinitialized", "driver shutting down"},
    {INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration", "hipErrorInvalidConfiguration",
     "invalid configuration argument"},
    {INVALID_PITCH, "cudaErrorInvalidPitchValue", "hipErrorInvalidPitchValue", "invalid pitch argument"},
    {INVALID_SYMBOL, "cudaErrorInvalidSymbol", "hipErrorInvalidSymbol", "invalid device symbol"},
    {INVALID_COPY_DIRECTION, "cudaErrorInvalidMemcpyDirection", "hipErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {INVALID_DEVICE, "cudaErrorInvalidDevice", "hipErrorInvalidDevice", "invalid device ordinal"},
    {INVALID_IMAGE, "cudaErrorInvalidKernelImage", "hipErrorInvalidImage", "device kernel image is invalid"},
    {INVALID_CONTEXT, "cudaErrorDeviceUninitialized", "hipErrorInvalidContext", "invalid device context"},
    {INVALID_PTX, "cudaErrorInvalidPtx", "hipErrorInvalidKernelFile", "a PTX JIT compilation failed"},
    {UNSUPPORTED_LIMIT, "cudaErrorUnsupportedLimit", "hipErrorUnsupportedLimit",
     "limit is not supported on this architecture"},
    {FILE_NOT_FOUND, "cudaErrorFileNotFound", "hipErrorFileNotFound", "file not found"},
    {INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "hipErrorInvalidHandle", "invalid resource handle"},
    {ILLEGAL_STATE, "cudaErrorIllegalState", "hipErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {NOT_FOUND, "cudaErrorSymbolNotFound", "hipErrorNotFound", "named symbol not found"},
    {NOT_READY, "cudaErrorNotReady", "hipErrorNotReady", "device not ready"},
    {ILLEGAL_ADDRESS, "cudaErrorIllegalAddress", "hipErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {LAUNCH_TIMEOUT, "cudaErrorLaunchTimeout", "hipErrorLaunchTimeOut", "the launch timed out and was terminated"},
    {PEER_ACCESS_ALREADY_ENABLED, "cudaErrorPeerAccessAlreadyEnabled", "hipErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {PEER_ACCESS_NOT_ENABLED, "cudaErrorPeerAccessNotEnabled", "hipErrorPeerAccessNotEnabled",
     "peer access has not been enabled"},
    {ASSERTED, "cudaErrorAssert", "hipErrorAssert", "device-side assert triggered"},
    {HOST_MEMORY_ALREADY_REGISTERED, "cudaErrorHostMemoryAlreadyRegistered", "hipErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {HOST_MEMORY_NOT_REGISTERED, "cudaErrorHostMemoryNotRegistered", "hipErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {HARDWARE_STACK_ERROR, "cudaErrorHardwareStackError", "hipErrorUnknown", "hardware stack error"},
    {ILLEGAL_INSTRUCTION, "cudaErrorIllegalInstruction", "hipErrorUnknown", "an illegal instruction was encountered"},
    {MISALIGNED_ADDRESS, "cudaErrorMisalignedAddress", "hipErrorUnknown", "misaligned address"},
    {INVALID_ADDRESS_SPACE, "cudaErrorInvalidAddressSpace", "hipErrorUnknown",
     "operation not supported on global or shared address space"},
    {INVALID_PROGRAM_COUNTER, "cudaErrorInvalidPc", "hipErrorUnknown", "invalid program counter"},
    {LAUNCH_FAILURE, "cudaErrorLaunchFailure", "hipErrorLaunchFailure", "unspecified launch failure"},
    {COOPERATIVE_TOO_LARGE, "cudaErrorCooperativeLaunchTooLarge", "hipErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {NOT_PERMITTED, "cudaErrorNotPermitted", "hipErrorNotPermitted", "operation not permitted"},
    {NOT_SUPPORTED, "cudaErrorNotSupported", "hipErrorNotSupported", "operation not supported"},
    {CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported", "hipErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated", "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {CAPTURE_MERGE, "cudaErrorStreamCaptureMerge", "hipErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {CAPTURE_UNMATCHED, "cudaErrorStreamCaptureUnmatched", "hipErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {CAPTURE_UNJOINED, "cudaErrorStreamCaptureUnjoined", "hipErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {CAPTURE_ISOLATION, "cudaErrorStreamCaptureIsolation", "hipErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {CAPTURE_IMPLICIT, "cudaErrorStreamCaptureImplicit", "hipErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {CAPTURED_EVENT, "cudaErrorCapturedEvent", "hipErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CAPTURE_WRONG_THREAD, "cudaErrorStreamCaptureWrongThread", "hipErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {GRAPH_UPDATE_FAILURE, "cudaErrorGraphExecUpdateFailure", "hipErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints specific to "
     "instantiated graph update"},
    {UNKNOWN, "cudaErrorUnknown", "hipErrorUnknown", "unknown error"},
};
enum { STATUSES_COUNT = sizeof STATUSES / sizeof *STATUSES };

static size_t find(int status) {
    for (size_t i = 0; i < STATUSES_COUNT; i++)
        if (STATUSES[i].number == status) return i;
    return STATUSES_COUNT;
}

const char *status_name(int status, bool hip) {
    size_t i = find(status);
    return i == STATUSES_COUNT ? "unrecognized error code" : hip ? STATUSES[i].hip : STATUSES[i].cuda;
}

const char *status_text(int status) {
    size_t i = find(status);
    return i == STATUSES_COUNT ? "unrecognized error code" : STATUSES[i].text;
}
