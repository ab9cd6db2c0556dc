// The front end that answers as libnvidia-ml: beginning and end, errors, versions, and which devices there are.

#include "management/nvml.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "machine/device.h"
#include "machine/lock.h"
#include "machine/settings.h"

static unsigned initializations;

bool nvml_is_initialized(void) { return initializations > 0; }

enum nvml nvml_text(char *place, unsigned bytes, const char *text) {
    if (strlen(text) >= bytes) return NVML_INSUFFICIENT_SIZE;
    strcpy(place, text);
    return NVML_SUCCESS;
}

// -- beginning and end: "a reference count of the number of initializations is maintained" (nvmlInit_v2) -------------

EXPORT int nvmlInit_v2(void) {
    lock_take();
    initializations++;
    NVML_ANSWER(NVML_SUCCESS);
}
EXPORT int nvmlInit(void) { return nvmlInit_v2(); }
EXPORT int nvmlInitWithFlags(unsigned flags) {
    (void)flags;  // whether a machine without devices, or with one that can't be attached, is an error
    return nvmlInit_v2();
}

EXPORT int nvmlShutdown(void) {
    NVML_CALL();
    initializations--;
    NVML_ANSWER(NVML_SUCCESS);
}

// -- errors ----------------------------------------------------------------------------------------------------------

static const struct {
    int number;
    const char *text;
} TEXTS[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {17, "GPU access blocked by the operating system"},
    {18, "Driver/library version mismatch"},
    {19, "In use by another client"},
    {20, "Insufficient Memory"},
    {21, "No data"},
    {23, "Insufficient Resources"},
    {25, "Argument version mismatch"},
    {26, "Deprecated"},
    {27, "Not Ready"},
    {28, "GPU not found"},
    {29, "Invalid state"},
};

EXPORT const char *nvmlErrorString(int error) {
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        if (TEXTS[i].number == error) return TEXTS[i].text;
    return "Unknown Error";
}

// -- versions --------------------------------------------------------------------------------------------------------

// The driver that came with the last release of a version (CUDA Toolkit release notes, "CUDA Toolkit and Corresponding
// Driver Versions"); for 13 that of 13.4, as 13.5 has no driver in that table.
static const char *driver_release(void) {
    switch (settings.version) {
        case 11: return "520.61.05";
        case 12: return "575.57.08";
        default: return "615.71.09";
    }
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned bytes) {
    NVML_CALL();
    NVML_NEED(text, NVML_INVALID_ARGUMENT);
    NVML_ANSWER(nvml_text(text, bytes, driver_release()));
}

EXPORT int nvmlSystemGetNVMLVersion(char *text, unsigned bytes) {
    lock_take();  // also before nvmlInit
    NVML_NEED(text, NVML_INVALID_ARGUMENT);
    char version[32];
    snprintf(version, sizeof version, "%u.%s", settings.version, driver_release());
    NVML_ANSWER(nvml_text(text, bytes, version));
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version) {
    lock_take();
    NVML_NEED(version, NVML_INVALID_ARGUMENT);
    *version = device_release();
    NVML_ANSWER(NVML_SUCCESS);
}
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }

struct confidential_state {  // nvmlConfComputeSystemState_t
    unsigned environment, feature, developer_tools;
};

EXPORT int nvmlSystemGetConfComputeState(struct confidential_state *state) {
    NVML_CALL();
    NVML_NEED(state, NVML_INVALID_ARGUMENT);
    *state = (struct confidential_state){0};  // in no such environment, disabled, off
    NVML_ANSWER(NVML_SUCCESS);
}

EXPORT int nvmlSystemGetProcessName(unsigned process, char *text, unsigned bytes) {
    NVML_CALL();
    NVML_NEED(text && bytes, NVML_INVALID_ARGUMENT);
    NVML_ANSWER(management_process_name(process, text, bytes) ? NVML_SUCCESS : NVML_NOT_FOUND);
}

// -- which devices there are -----------------------------------------------------------------------------------------

EXPORT int nvmlDeviceGetCount_v2(unsigned *count) {
    NVML_CALL();
    NVML_NEED(count, NVML_INVALID_ARGUMENT);
    *count = settings.devices;
    NVML_ANSWER(NVML_SUCCESS);
}
EXPORT int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    NVML_CALL();
    NVML_NEED(handle && index < settings.devices, NVML_INVALID_ARGUMENT);
    *handle = management_handle(index);
    NVML_ANSWER(NVML_SUCCESS);
}
EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, void **handle) {
    return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

// "domain:bus:device.function", "domain:bus:device" or "bus:device.function" (nvmlDeviceGetHandleByPciBusId_v2).
static bool parse_bus(const char *text, unsigned *domain, unsigned *bus, unsigned *slot, unsigned *function) {
    *domain = *function = 0;
    if (sscanf(text, "%x:%x:%x.%x", domain, bus, slot, function) >= 3) return true;
    *domain = 0;
    return sscanf(text, "%x:%x.%x", bus, slot, function) == 3;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *text, void **handle) {
    NVML_CALL();
    unsigned domain, bus, slot, function;
    NVML_NEED(text && handle && parse_bus(text, &domain, &bus, &slot, &function), NVML_INVALID_ARGUMENT);
    NVML_NEED(!domain && !slot && !function && device_exists((int)bus - 1), NVML_NOT_FOUND);
    *handle = management_handle(bus - 1);
    NVML_ANSWER(NVML_SUCCESS);
}
EXPORT int nvmlDeviceGetHandleByPciBusId(const char *text, void **handle) {
    return nvmlDeviceGetHandleByPciBusId_v2(text, handle);
}

// As the runtime's identifier is written: GPU-8-4-4-4-12 digits.
static void write_uuid(char *text, size_t room, unsigned device) {
    unsigned char bytes[DEVICE_UUID_BYTES];
    device_uuid(bytes, device);
    size_t length = (size_t)snprintf(text, room, "GPU");
    for (unsigned i = 0; i < DEVICE_UUID_BYTES; i++) {
        bool begins = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        length += (size_t)snprintf(text + length, room - length, begins ? "-%02x" : "%02x", bytes[i]);
    }
}

EXPORT int nvmlDeviceGetUUID(void *handle, char *text, unsigned bytes) {
    NVML_CALL_OF(handle, text);
    char uuid[48];
    write_uuid(uuid, sizeof uuid, device);
    NVML_ANSWER(nvml_text(text, bytes, uuid));
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *text, void **handle) {
    NVML_CALL();
    NVML_NEED(text && handle, NVML_INVALID_ARGUMENT);
    for (unsigned device = 0; device < settings.devices; device++) {
        char uuid[48];
        write_uuid(uuid, sizeof uuid, device);
        if (strcmp(uuid, text)) continue;
        *handle = management_handle(device);
        NVML_ANSWER(NVML_SUCCESS);
    }
    NVML_ANSWER(NVML_NOT_FOUND);
}
