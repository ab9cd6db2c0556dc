// The front end that answers as libamd_smi (AMD SMI): devices, memory and processes.
//
// Numbers and structures are those of amdsmi.h, which gave texts more room with ROCm 7 (the package amdsmi 7.0.2). What
// is answered without amdsmi_init, and for too little room, follows the library's source (amd_smi.cc). There is one
// socket for each device.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/device.h"
#include "machine/export.h"
#include "machine/lock.h"
#include "machine/settings.h"
#include "management/management.h"

enum amdsmi {
    AMDSMI_SUCCESS = 0,
    AMDSMI_INVALID = 1,
    AMDSMI_NOT_SUPPORTED = 2,
    AMDSMI_OUT_OF_RESOURCES = 15,
    AMDSMI_NOT_FOUND = 31,
    AMDSMI_NOT_INITIALIZED = 32,
};

static bool initialized;
static char sockets[DEVICES_MAX];  // a handle is an address in here

#define ANSWER(answer) return management_leave(answer)
#define NEED(condition, otherwise) \
    if (!(condition)) ANSWER(otherwise)
#define CALL()      \
    lock_take(); \
    NEED(initialized, AMDSMI_NOT_INITIALIZED)
#define CALL_OF(handle, needed) \
    CALL();                     \
    unsigned device;            \
    NEED(management_device(handle, &device) && (needed), AMDSMI_INVALID)

EXPORT int amdsmi_init(uint64_t flags) {
    enum { DEVICES = 2 };
    lock_take();
    NEED(flags & DEVICES, AMDSMI_NOT_SUPPORTED);  // there is nothing to say of processors and network cards
    initialized = true;
    ANSWER(AMDSMI_SUCCESS);
}

EXPORT int amdsmi_shut_down(void) {
    lock_take();
    initialized = false;
    ANSWER(AMDSMI_SUCCESS);
}

EXPORT int amdsmi_status_code_to_string(int status, const char **text) {
    if (!text) return AMDSMI_INVALID;
    switch (status) {
        case AMDSMI_SUCCESS: *text = "AMDSMI_STATUS_SUCCESS: Call succeeded."; break;
        case AMDSMI_INVALID: *text = "AMDSMI_STATUS_INVAL: Invalid parameters."; break;
        case AMDSMI_NOT_SUPPORTED: *text = "AMDSMI_STATUS_NOT_SUPPORTED: Command not supported."; break;
        case AMDSMI_OUT_OF_RESOURCES: *text = "AMDSMI_STATUS_OUT_OF_RESOURCES: There is not enough room."; break;
        case AMDSMI_NOT_FOUND: *text = "AMDSMI_STATUS_NOT_FOUND: Device not found."; break;
        case AMDSMI_NOT_INITIALIZED: *text = "AMDSMI_STATUS_NOT_INIT: Device not initialized."; break;
        default: *text = "AMDSMI_STATUS_UNKNOWN_ERROR: An unknown error occurred.";
    }
    return AMDSMI_SUCCESS;
}

// -- which devices there are -----------------------------------------------------------------------------------------

static bool find_socket(const void *handle, unsigned *device) {
    for (unsigned each = 0; each < settings.devices; each++)
        if (handle == &sockets[each]) {
            *device = each;
            return true;
        }
    return false;
}

EXPORT int amdsmi_get_socket_handles(uint32_t *count, void **handles) {
    CALL();
    NEED(count, AMDSMI_INVALID);
    if (!handles || *count > settings.devices) *count = settings.devices;
    for (unsigned i = 0; handles && i < *count; i++) handles[i] = &sockets[i];
    ANSWER(AMDSMI_SUCCESS);
}

EXPORT int amdsmi_get_socket_info(const void *socket, size_t bytes, char *text) {
    CALL();
    unsigned device;
    NEED(find_socket(socket, &device) && text && bytes, AMDSMI_INVALID);
    snprintf(text, bytes, "0000:%02x:00", device + 1);
    ANSWER(AMDSMI_SUCCESS);
}

EXPORT int amdsmi_get_processor_handles(const void *socket, uint32_t *count, void **handles) {
    CALL();
    unsigned device;
    NEED(find_socket(socket, &device) && count, AMDSMI_INVALID);
    if (!handles || *count > 1) *count = 1;
    if (handles && *count) *handles = management_handle(device);
    ANSWER(AMDSMI_SUCCESS);
}

enum { A_GPU = 1 };  // processor_type_t

EXPORT int amdsmi_get_processor_handles_by_type(const void *socket, int type, void **handles, uint32_t *count) {
    if (type == A_GPU) return amdsmi_get_processor_handles(socket, count, handles);
    CALL();
    NEED(count, AMDSMI_INVALID);
    *count = 0;
    ANSWER(AMDSMI_SUCCESS);
}

EXPORT int amdsmi_get_processor_type(const void *handle, int *type) {
    CALL_OF(handle, type);
    *type = A_GPU;
    ANSWER(AMDSMI_SUCCESS);
}

// amdsmi_bdf_t: from the lowest, three bits of the function, five of the device, eight of the bus, then the domain.
enum { BUS_SHIFT = 8 };

EXPORT int amdsmi_get_gpu_device_bdf(const void *handle, uint64_t *place) {
    CALL_OF(handle, place);
    *place = (uint64_t)(device + 1) << BUS_SHIFT;
    ANSWER(AMDSMI_SUCCESS);
}

EXPORT int amdsmi_get_processor_handle_from_bdf(uint64_t place, void **handle) {
    CALL();
    NEED(handle, AMDSMI_INVALID);
    uint64_t bus = place >> BUS_SHIFT;
    NEED(place == bus << BUS_SHIFT && bus && bus <= settings.devices, AMDSMI_NOT_FOUND);
    *handle = management_handle((unsigned)bus - 1);
    ANSWER(AMDSMI_SUCCESS);
}

// -- what a device is ------------------------------------------------------------------------------------------------

EXPORT int amdsmi_get_gpu_device_uuid(const void *handle, unsigned *bytes, char *text) {
    enum { TEXT_BYTES = 38 };  // AMDSMI_GPU_UUID_SIZE
    CALL_OF(handle, bytes && text && *bytes >= TEXT_BYTES);
    uint64_t number = device_number(device);
    snprintf(text, *bytes, "%08x-0000-1000-8000-%04x%08x", device, (unsigned)(number >> 48 & 0xffff), (unsigned)number);
    ANSWER(AMDSMI_SUCCESS);
}

#define ASIC_INFO(layout, text_bytes, serial_bytes)                                 \
    struct layout {                                                                 \
        char market_name[256];                                                      \
        uint32_t vendor;                                                            \
        char vendor_name[text_bytes];                                               \
        uint32_t vendor_of_board;                                                   \
        uint64_t device;                                                            \
        uint32_t revision;                                                          \
        char serial[serial_bytes];                                                  \
        uint32_t module, multiprocessors;                                           \
        uint64_t target;                                                            \
        uint32_t reserved[(text_bytes) == 256 ? 22 : 15];                           \
    };                                                                              \
    static void describe_##layout(struct layout *info, unsigned device) {           \
        enum { AMD = 0x1002, GFX90A = 0x90a, MULTIPROCESSORS = 63, NONE = 0xffff }; \
        int multiprocessors = 0;                                                    \
        device_attribute(MULTIPROCESSORS, device, &multiprocessors);                \
        *info = (struct layout){.vendor = AMD, .module = NONE, .target = GFX90A};   \
        device_name(info->market_name, sizeof info->market_name, device);           \
        strcpy(info->vendor_name, "Advanced Micro Devices Inc. [AMD/ATI]");         \
        info->multiprocessors = (uint32_t)multiprocessors;                          \
        device_uuid(info->serial, device);                                          \
    }
ASIC_INFO(asic_before_7, 64, 32)
ASIC_INFO(asic, 256, 256)

EXPORT int amdsmi_get_gpu_asic_info(const void *handle, void *info) {
    CALL_OF(handle, info);
    if (settings.version < 7)
        describe_asic_before_7(info, device);
    else
        describe_asic(info, device);
    ANSWER(AMDSMI_SUCCESS);
}

struct enumeration {  // amdsmi_enumeration_info_t, since ROCm 6.4
    uint32_t render_node, card, agent, ordinal;
    char uuid[256];
};

EXPORT int amdsmi_get_gpu_enumeration_info(const void *handle, struct enumeration *info) {
    enum { FIRST_RENDER_NODE = 128 };
    CALL_OF(handle, info);
    *info = (struct enumeration){FIRST_RENDER_NODE + device, device, device + 1, device, "GPU-"};  // agent 0: the host
    device_uuid(info->uuid + 4, device);
    ANSWER(AMDSMI_SUCCESS);
}

struct activity {  // amdsmi_engine_usage_t: how many percent of the time
    uint32_t kernels, memory, media, reserved[13];
};

EXPORT int amdsmi_get_gpu_activity(const void *handle, struct activity *activity) {
    CALL_OF(handle, activity);
    *activity = (struct activity){0};  // kernels take no time here
    ANSWER(AMDSMI_SUCCESS);
}

// -- memory and processes --------------------------------------------------------------------------------------------

enum memory_type { OF_DEVICE, OF_DEVICE_VISIBLE_TO_HOST, OF_HOST };  // amdsmi_memory_type_t

static int memory_of(const void *handle, int type, uint64_t *bytes, bool used) {
    CALL_OF(handle, bytes && type >= OF_DEVICE && type <= OF_HOST);
    NEED(type != OF_HOST, AMDSMI_NOT_SUPPORTED);  // what devices use of it is not counted by device here
    struct device_use use = management_use(device);
    *bytes = used ? use.used_bytes : use.total_bytes;
    ANSWER(AMDSMI_SUCCESS);
}
EXPORT int amdsmi_get_gpu_memory_total(const void *handle, int type, uint64_t *bytes) {
    return memory_of(handle, type, bytes, false);
}
EXPORT int amdsmi_get_gpu_memory_usage(const void *handle, int type, uint64_t *bytes) {
    return memory_of(handle, type, bytes, true);
}

struct vram {  // amdsmi_vram_usage_t
    uint32_t total_mebibytes, used_mebibytes, reserved[2];
};

EXPORT int amdsmi_get_gpu_vram_usage(const void *handle, struct vram *vram) {
    CALL_OF(handle, vram);
    struct device_use use = management_use(device);
    *vram = (struct vram){(uint32_t)(use.total_bytes >> 20), (uint32_t)(use.used_bytes >> 20), {0}};
    ANSWER(AMDSMI_SUCCESS);
}

#define PROCESS_INFO(layout, text_bytes, rest_words)                                                  \
    struct layout {                                                                                   \
        char name[text_bytes];                                                                        \
        uint32_t number;                                                                              \
        uint64_t bytes;                                                                               \
        uint64_t kernels_nanoseconds, encoder_nanoseconds;                                            \
        uint32_t reserved_of_engines[12];                                                             \
        uint64_t gtt_bytes, host_bytes, device_bytes;                                                 \
        uint32_t reserved_of_memory[10];                                                              \
        char container[text_bytes];                                                                   \
        uint32_t rest[rest_words];                                                                    \
    };                                                                                                \
    static void describe_##layout(struct layout *info, uint64_t bytes) {                              \
        *info = (struct layout){.number = (uint32_t)getpid(), .bytes = bytes, .device_bytes = bytes}; \
        management_process_name(info->number, info->name, sizeof info->name);                         \
    }
PROCESS_INFO(process_before_7, 32, 4)
PROCESS_INFO(process, 256, 12)

EXPORT int amdsmi_get_gpu_process_list(const void *handle, uint32_t *count, void *list) {
    CALL_OF(handle, count);
    struct device_use use = management_use(device);
    bool is_asked = *count > 0;
    *count = use.by_this_process;
    if (!is_asked || !use.by_this_process) ANSWER(AMDSMI_SUCCESS);
    NEED(list, AMDSMI_INVALID);
    if (settings.version < 7)
        describe_process_before_7(list, use.used_bytes);
    else
        describe_process(list, use.used_bytes);
    ANSWER(AMDSMI_SUCCESS);
}

// -- what it has not -------------------------------------------------------------------------------------------------

static int lacks(const void *handle) {
    CALL_OF(handle, true);
    (void)device;
    ANSWER(AMDSMI_NOT_SUPPORTED);
}
#define LACKS(name) \
    EXPORT int name(const void *handle) { return lacks(handle); }
LACKS(amdsmi_get_clock_info)
LACKS(amdsmi_get_energy_count)
LACKS(amdsmi_get_gpu_fan_rpms)
LACKS(amdsmi_get_gpu_fan_speed)
LACKS(amdsmi_get_gpu_fan_speed_max)
LACKS(amdsmi_get_power_info)
LACKS(amdsmi_get_temp_metric)
