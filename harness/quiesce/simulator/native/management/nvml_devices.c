// The front end that answers as libnvidia-ml: what is asked of a device.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/device.h"
#include "machine/settings.h"
#include "management/nvml.h"

// -- what it is ------------------------------------------------------------------------------------------------------

EXPORT int nvmlDeviceGetName(void *handle, char *text, unsigned bytes) {
    NVML_CALL_OF(handle, text);
    char name[64];
    device_name(name, sizeof name, device);
    NVML_ANSWER(nvml_text(text, bytes, name));
}

static int tell(void *handle, unsigned *value, int told) {
    NVML_CALL_OF(handle, value);
    *value = told < 0 ? device : (unsigned)told;
    NVML_ANSWER(NVML_SUCCESS);
}
enum { ITS_NUMBER = -1 };
#define TELLS(name, told) \
    EXPORT int name(void *handle, unsigned *value) { return tell(handle, value, told); }
TELLS(nvmlDeviceGetIndex, ITS_NUMBER)
TELLS(nvmlDeviceGetMinorNumber, ITS_NUMBER)  // of /dev/nvidia<number>
TELLS(nvmlDeviceGetBoardId, ITS_NUMBER)
TELLS(nvmlDeviceGetMultiGpuBoard, 0)
TELLS(nvmlDeviceIsMigDeviceHandle, 0)
TELLS(nvmlDeviceGetDisplayMode, 0)      // disabled
TELLS(nvmlDeviceGetDisplayActive, 0)    // disabled
TELLS(nvmlDeviceGetPersistenceMode, 0)  // disabled
TELLS(nvmlDeviceGetComputeMode, 0)      // default: many contexts of many processes
TELLS(nvmlDeviceGetArchitecture, 7)     // Ampere, of which the compute capability is
TELLS(nvmlDeviceGetCurrPcieLinkGeneration, 4)
TELLS(nvmlDeviceGetMaxPcieLinkGeneration, 4)
TELLS(nvmlDeviceGetCurrPcieLinkWidth, 16)
TELLS(nvmlDeviceGetMaxPcieLinkWidth, 16)

// The numbers of these attributes are those of cudaDeviceAttr.
enum { CLOCK_KHZ = 13, MEMORY_CLOCK_KHZ = 36, MEMORY_BUS_BITS = 37, MAJOR = 75, MINOR = 76 };

EXPORT int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    NVML_CALL_OF(handle, major && minor);
    device_attribute(MAJOR, device, major);
    device_attribute(MINOR, device, minor);
    NVML_ANSWER(NVML_SUCCESS);
}

EXPORT int nvmlDeviceGetMemoryBusWidth(void *handle, int *bits) {
    NVML_CALL_OF(handle, bits);
    device_attribute(MEMORY_BUS_BITS, device, bits);
    NVML_ANSWER(NVML_SUCCESS);
}

static int clock_of(void *handle, int domain, int *megahertz) {
    enum { GRAPHICS, MULTIPROCESSOR, MEMORY, VIDEO };
    NVML_CALL_OF(handle, megahertz && domain >= GRAPHICS && domain <= VIDEO);
    device_attribute(domain == MEMORY ? MEMORY_CLOCK_KHZ : CLOCK_KHZ, device, megahertz);
    *megahertz /= 1000;
    NVML_ANSWER(NVML_SUCCESS);
}
EXPORT int nvmlDeviceGetClockInfo(void *handle, int domain, int *mhz) { return clock_of(handle, domain, mhz); }
EXPORT int nvmlDeviceGetMaxClockInfo(void *handle, int domain, int *mhz) { return clock_of(handle, domain, mhz); }

struct pci_before {  // nvmlPciInfo_v2_t, without its four reserved numbers
    char bus_legacy[16];
    unsigned domain, bus, slot, device_and_vendor, subsystem;
};
struct pci {  // nvmlPciInfo_t
    struct pci_before before;
    char bus[32];
};

static int pci_info(void *handle, void *place, size_t bytes) {
    NVML_CALL_OF(handle, place);
    enum { NVIDIA = 0x10de };
    struct pci told = {.before = {.bus = device + 1, .device_and_vendor = NVIDIA}};
    device_bus(told.before.bus_legacy, sizeof told.before.bus_legacy, device);
    snprintf(told.bus, sizeof told.bus, "0000%s", told.before.bus_legacy);  // here a domain has eight digits
    memcpy(place, &told, bytes);
    NVML_ANSWER(NVML_SUCCESS);
}
EXPORT int nvmlDeviceGetPciInfo_v3(void *handle, void *info) { return pci_info(handle, info, sizeof(struct pci)); }
EXPORT int nvmlDeviceGetPciInfo_v2(void *handle, void *info) {
    return pci_info(handle, info, sizeof(struct pci_before));
}

// -- memory and processes --------------------------------------------------------------------------------------------

struct memory {  // nvmlMemory_t
    uint64_t total, free, used;
};
struct memory_with_reserved {  // nvmlMemory_v2_t
    unsigned version;
    uint64_t total, reserved, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory) {
    NVML_CALL_OF(handle, memory);
    struct device_use use = management_use(device);
    *memory = (struct memory){use.total_bytes, use.total_bytes - use.used_bytes, use.used_bytes};
    NVML_ANSWER(NVML_SUCCESS);
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_with_reserved *memory) {
    NVML_CALL_OF(handle, memory);
    unsigned version = sizeof *memory | 2 << 24;  // NVML_STRUCT_VERSION
    NVML_NEED(memory->version == version, NVML_ARGUMENT_VERSION_MISMATCH);
    struct device_use use = management_use(device);
    *memory = (struct memory_with_reserved){version, use.total_bytes, 0, use.total_bytes - use.used_bytes,
                                            use.used_bytes};
    NVML_ANSWER(NVML_SUCCESS);
}

struct process {  // nvmlProcessInfo_v2_t; nvmlProcessInfo_v1_t is its beginning
    unsigned number;
    uint64_t used_bytes;
    unsigned instance, compute_instance;
};
enum { FIRST_PROCESS_BYTES = 16 };
_Static_assert(sizeof(struct process) == 24, "as in nvml.h");

// "To query the current number of running compute processes, call this function with *infoCount = 0. The return code
// will be NVML_ERROR_INSUFFICIENT_SIZE, or NVML_SUCCESS if none are running."
static int processes(void *handle, unsigned *count, void *place, size_t bytes) {
    NVML_CALL_OF(handle, count && (place || !*count));
    struct device_use use = management_use(device);
    bool fits = *count >= use.by_this_process;
    *count = use.by_this_process;
    NVML_NEED(fits, NVML_INSUFFICIENT_SIZE);
    struct process told = {(unsigned)getpid(), use.used_bytes, ~0u, ~0u};
    if (use.by_this_process) memcpy(place, &told, bytes);
    NVML_ANSWER(NVML_SUCCESS);
}
#define COMPUTES(name, bytes) \
    EXPORT int name(void *handle, unsigned *count, void *place) { return processes(handle, count, place, bytes); }
COMPUTES(nvmlDeviceGetComputeRunningProcesses, FIRST_PROCESS_BYTES)
COMPUTES(nvmlDeviceGetComputeRunningProcesses_v2, sizeof(struct process))
COMPUTES(nvmlDeviceGetComputeRunningProcesses_v3, sizeof(struct process))

static int no_processes(void *handle, unsigned *count, void *place) {
    NVML_CALL_OF(handle, count && (place || !*count));
    (void)device;
    *count = 0;
    NVML_ANSWER(NVML_SUCCESS);
}
#define DRAWS(name) \
    EXPORT int name(void *handle, unsigned *count, void *place) { return no_processes(handle, count, place); }
DRAWS(nvmlDeviceGetGraphicsRunningProcesses)
DRAWS(nvmlDeviceGetGraphicsRunningProcesses_v2)
DRAWS(nvmlDeviceGetGraphicsRunningProcesses_v3)
DRAWS(nvmlDeviceGetMPSComputeRunningProcesses)
DRAWS(nvmlDeviceGetMPSComputeRunningProcesses_v2)
DRAWS(nvmlDeviceGetMPSComputeRunningProcesses_v3)

struct utilization {  // nvmlUtilization_t: how many percent of the time
    unsigned kernels, memory;
};

EXPORT int nvmlDeviceGetUtilizationRates(void *handle, struct utilization *rates) {
    NVML_CALL_OF(handle, rates);
    (void)device;
    *rates = (struct utilization){0};  // kernels take no time here
    NVML_ANSWER(NVML_SUCCESS);
}

// -- several devices -------------------------------------------------------------------------------------------------

#define CALL_OF_TWO(first, second, needed)                                                       \
    NVML_CALL_OF(first, needed);                                                                 \
    unsigned other;                                                                              \
    NVML_NEED(management_device(second, &other), NVML_INVALID_ARGUMENT)

EXPORT int nvmlDeviceGetP2PStatus(void *first, void *second, int capability, int *status) {
    enum { READ, WRITE, NVLINK, ATOMICS, PCI };
    enum { ALLOWED = 0, NOT_ALLOWED = 5 };
    CALL_OF_TWO(first, second, status && capability >= READ && capability <= PCI);
    *status = device == other || capability == NVLINK ? NOT_ALLOWED : ALLOWED;
    NVML_ANSWER(NVML_SUCCESS);
}

EXPORT int nvmlDeviceOnSameBoard(void *first, void *second, int *same) {
    CALL_OF_TWO(first, second, same);
    *same = device == other;
    NVML_ANSWER(NVML_SUCCESS);
}

enum { SAME_BOARD = 0, SAME_HOST_BRIDGE = 30, SAME_SYSTEM = 50 };  // nvmlGpuTopologyLevel_t

EXPORT int nvmlDeviceGetTopologyCommonAncestor(void *first, void *second, int *level) {
    CALL_OF_TWO(first, second, level);
    *level = device == other ? SAME_BOARD : SAME_HOST_BRIDGE;
    NVML_ANSWER(NVML_SUCCESS);
}

EXPORT int nvmlDeviceGetTopologyNearestGpus(void *handle, int level, unsigned *count, void **found) {
    NVML_CALL_OF(handle, count && (found || !*count) && level >= SAME_BOARD && level <= SAME_SYSTEM);
    unsigned room = *count, matching = 0;
    for (unsigned other = 0; other < settings.devices && level == SAME_HOST_BRIDGE; other++) {
        if (other == device) continue;
        if (matching < room) found[matching] = management_handle(other);
        matching++;
    }
    if (!room || matching < room) *count = matching;
    NVML_ANSWER(NVML_SUCCESS);
}

// -- what it has not: "NVML_ERROR_NOT_SUPPORTED if the device does not support this feature" -------------------------

static int lacks(void *handle) {
    NVML_CALL_OF(handle, true);
    (void)device;
    NVML_ANSWER(NVML_NOT_SUPPORTED);
}
#define LACKS(name) \
    EXPORT int name(void *handle) { return lacks(handle); }
LACKS(nvmlDeviceGetAttributes_v2)
LACKS(nvmlDeviceGetDecoderUtilization)
LACKS(nvmlDeviceGetDetailedEccErrors)
LACKS(nvmlDeviceGetDriverModel)  // of Windows
LACKS(nvmlDeviceGetDriverModel_v2)
LACKS(nvmlDeviceGetEccMode)
LACKS(nvmlDeviceGetEncoderUtilization)
LACKS(nvmlDeviceGetEnforcedPowerLimit)
LACKS(nvmlDeviceGetFanSpeed)
LACKS(nvmlDeviceGetFanSpeed_v2)
LACKS(nvmlDeviceGetGpuFabricInfo)
LACKS(nvmlDeviceGetGpuFabricInfoV)
LACKS(nvmlDeviceGetMemoryErrorCounter)
LACKS(nvmlDeviceGetMigMode)
LACKS(nvmlDeviceGetNumFans)
LACKS(nvmlDeviceGetNvLinkCapability)
LACKS(nvmlDeviceGetNvLinkRemoteDeviceType)
LACKS(nvmlDeviceGetNvLinkRemotePciInfo)
LACKS(nvmlDeviceGetNvLinkRemotePciInfo_v2)
LACKS(nvmlDeviceGetNvLinkState)
LACKS(nvmlDeviceGetNvLinkVersion)
LACKS(nvmlDeviceGetPerformanceState)
LACKS(nvmlDeviceGetPowerManagementLimit)
LACKS(nvmlDeviceGetPowerUsage)
LACKS(nvmlDeviceGetSerial)
LACKS(nvmlDeviceGetTemperature)
LACKS(nvmlDeviceGetTemperatureThreshold)
LACKS(nvmlDeviceGetTemperatureV)
LACKS(nvmlDeviceGetTotalEccErrors)
LACKS(nvmlDeviceGetTotalEnergyConsumption)

struct field_value {  // nvmlFieldValue_t
    unsigned number, scope;
    int64_t time, latency;
    int type, status;
    uint64_t value;
};

// "you must check the nvmlReturn field of each value": counters, links and sensors, of which there are none.
EXPORT int nvmlDeviceGetFieldValues(void *handle, int count, struct field_value *fields) {
    NVML_CALL_OF(handle, fields && count > 0);
    (void)device;
    for (int i = 0; i < count; i++) fields[i].status = NVML_NOT_SUPPORTED;
    NVML_ANSWER(NVML_SUCCESS);
}
