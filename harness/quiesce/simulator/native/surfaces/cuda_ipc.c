// The front end that answers as libcuda: memory and events of other processes.

#define LIBCUDA
#include "surfaces/calls.h"

#define API(name) cu##name
#define NAME(name) "cu" #name
#define DEVICE_POINTER uint64_t
#include "surfaces/ipc_calls.inc"

EXPORT int cuIpcOpenMemHandle_v2(uint64_t *address, struct shared_handle handle, unsigned flags) {
    return open_memory(address, &handle, flags, "cuIpcOpenMemHandle_v2");
}
