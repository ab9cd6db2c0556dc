// What the vendors' management libraries (NVML, ROCm SMI, AMD SMI) tell alike: of devices, seen from beside them.
//
// They need no context and make none: with lock_take() nothing starts, for a child of fork() may use no machine that
// ran before, and a process that asked them may still fork.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lifetime/runtime.h"

// How many bytes of a device this process uses, and of how many; whether it is one of the device's processes.
struct device_use {
    uint64_t used_bytes, total_bytes;
    bool by_this_process;
};
struct device_use management_use(unsigned device);

// A handle of a device is an address: one that is none of these is no device's.
void *management_handle(unsigned device);
bool management_device(const void *handle, unsigned *device);

// The command line of a process, cut to the room there is; false where there is no such process.
bool management_process_name(unsigned process, char *text, size_t bytes);

// Gives back the lock, and the answer.
static inline int management_leave(int answer) {
    runtime_leave_to_driver(OK);
    return answer;
}
