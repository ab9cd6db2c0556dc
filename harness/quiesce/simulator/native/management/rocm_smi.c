// The front end that answers as librocm_smi64 (ROCm SMI): devices, memory and processes.
//
// Numbers and structures are those of rocm_smi.h; what is answered without rsmi_init, and for too little room, follows
// the library's source (rocm_smi.cc), where the header does not say it: without it there are no devices.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/device.h"
#include "machine/export.h"
#include "machine/lock.h"
#include "machine/settings.h"
#include "management/management.h"

enum rsmi {
    RSMI_SUCCESS = 0,
    RSMI_INVALID_ARGUMENT = 1,
    RSMI_NOT_SUPPORTED = 2,
    RSMI_INIT_ERROR = 8,
    RSMI_NOT_FOUND = 10,
    RSMI_INSUFFICIENT_SIZE = 11,
};

static unsigned initializations;

#define ANSWER(answer) return management_leave(answer)
#define NEED(condition, otherwise) \
    if (!(condition)) ANSWER(otherwise)
#define CALL_OF(device, needed) \
    lock_take();             \
    NEED(initializations && (device) < settings.devices && (needed), RSMI_INVALID_ARGUMENT)

EXPORT int rsmi_init(uint64_t flags) {
    (void)flags;  // which devices, of those that exist
    lock_take();
    initializations++;
    ANSWER(RSMI_SUCCESS);
}

EXPORT int rsmi_shut_down(void) {
    lock_take();
    NEED(initializations, RSMI_INIT_ERROR);
    initializations--;
    ANSWER(RSMI_SUCCESS);
}

EXPORT int rsmi_status_string(int status, const char **text) {
    if (!text) return RSMI_INVALID_ARGUMENT;
    switch (status) {
        case RSMI_SUCCESS: *text = "RSMI_STATUS_SUCCESS: The function has been executed successfully."; break;
        case RSMI_INVALID_ARGUMENT: *text = "RSMI_STATUS_INVALID_ARGS: The provided arguments are invalid."; break;
        case RSMI_NOT_SUPPORTED: *text = "RSMI_STATUS_NOT_SUPPORTED: This function is not supported here."; break;
        case RSMI_INIT_ERROR: *text = "RSMI_STATUS_INIT_ERROR: The library is not initialized."; break;
        case RSMI_NOT_FOUND: *text = "RSMI_STATUS_NOT_FOUND: An item was searched for and not found."; break;
        case RSMI_INSUFFICIENT_SIZE: *text = "RSMI_STATUS_INSUFFICIENT_SIZE: There is not enough room."; break;
        default: *text = "RSMI_STATUS_UNKNOWN_ERROR: An unknown error occurred.";
    }
    return RSMI_SUCCESS;
}

// -- devices ---------------------------------------------------------------------------------------------------------

EXPORT int rsmi_num_monitor_devices(uint32_t *count) {
    lock_take();
    NEED(count, RSMI_INVALID_ARGUMENT);
    *count = initializations ? settings.devices : 0;
    ANSWER(RSMI_SUCCESS);
}

EXPORT int rsmi_dev_name_get(uint32_t device, char *text, size_t bytes) {
    CALL_OF(device, text && bytes);
    char name[64];
    device_name(name, sizeof name, device);
    snprintf(text, bytes, "%s", name);  // cut where it does not fit
    ANSWER(strlen(name) < bytes ? RSMI_SUCCESS : RSMI_INSUFFICIENT_SIZE);
}

EXPORT int rsmi_dev_unique_id_get(uint32_t device, uint64_t *number) {
    CALL_OF(device, number);
    *number = device_number(device);
    ANSWER(RSMI_SUCCESS);
}

EXPORT int rsmi_dev_pci_id_get(uint32_t device, uint64_t *place) {
    CALL_OF(device, place);
    *place = (uint64_t)(device + 1) << 8;  // the bus; domain, device and function are 0
    ANSWER(RSMI_SUCCESS);
}

// Kernels take no time here, so that nothing is ever busy.
EXPORT int rsmi_dev_busy_percent_get(uint32_t device, uint32_t *percent) {
    CALL_OF(device, percent);
    *percent = 0;
    ANSWER(RSMI_SUCCESS);
}
EXPORT int rsmi_dev_memory_busy_percent_get(uint32_t device, uint32_t *percent) {
    return rsmi_dev_busy_percent_get(device, percent);
}

// -- memory ----------------------------------------------------------------------------------------------------------

enum memory_type { OF_DEVICE, OF_DEVICE_VISIBLE_TO_HOST, OF_HOST };  // rsmi_memory_type_t

static int memory_of(uint32_t device, int type, uint64_t *bytes, bool used) {
    CALL_OF(device, bytes && type >= OF_DEVICE && type <= OF_HOST);
    NEED(type != OF_HOST, RSMI_NOT_SUPPORTED);  // what devices use of it is not counted by device here
    struct device_use use = management_use(device);
    *bytes = used ? use.used_bytes : use.total_bytes;
    ANSWER(RSMI_SUCCESS);
}
EXPORT int rsmi_dev_memory_total_get(uint32_t device, int type, uint64_t *bytes) {
    return memory_of(device, type, bytes, false);
}
EXPORT int rsmi_dev_memory_usage_get(uint32_t device, int type, uint64_t *bytes) {
    return memory_of(device, type, bytes, true);
}

// -- processes -------------------------------------------------------------------------------------------------------

struct process {  // rsmi_process_info_t
    uint32_t number, address_space;
    uint64_t used_bytes, copied_microseconds;
    uint32_t busy_percent;
};

// This process on one device; on all of them where that is settings.devices. Returns how many it uses.
static uint32_t describe(uint32_t device, struct process *process) {
    uint32_t uses = 0;
    *process = (struct process){.number = (uint32_t)getpid()};
    for (unsigned each = 0; each < settings.devices; each++) {
        if (device != settings.devices && device != each) continue;
        struct device_use use = management_use(each);
        uses += use.by_this_process;
        process->used_bytes += use.by_this_process ? use.used_bytes : 0;
    }
    return uses;
}

EXPORT int rsmi_compute_process_info_get(struct process *processes, uint32_t *count) {
    lock_take();
    NEED(count, RSMI_INVALID_ARGUMENT);
    struct process own;
    uint32_t running = initializations && describe(settings.devices, &own) > 0;
    NEED(!processes || *count >= running, RSMI_INSUFFICIENT_SIZE);
    if (processes && running) *processes = own;
    *count = running;
    ANSWER(RSMI_SUCCESS);
}

static int process_of(uint32_t number, uint32_t device, struct process *process) {
    NEED(process, RSMI_INVALID_ARGUMENT);
    struct process own;
    NEED(number == (uint32_t)getpid() && describe(device, &own) > 0, RSMI_NOT_FOUND);
    *process = own;
    ANSWER(RSMI_SUCCESS);
}
EXPORT int rsmi_compute_process_info_by_pid_get(uint32_t number, struct process *process) {
    lock_take();
    NEED(initializations, RSMI_NOT_FOUND);
    return process_of(number, settings.devices, process);
}
EXPORT int rsmi_compute_process_info_by_device_get(uint32_t number, uint32_t device, struct process *process) {
    CALL_OF(device, true);
    return process_of(number, device, process);
}

EXPORT int rsmi_compute_process_gpus_get(uint32_t number, uint32_t *devices, uint32_t *count) {
    lock_take();
    NEED(count, RSMI_INVALID_ARGUMENT);
    uint32_t room = *count, uses = 0;
    bool is_own = initializations && number == (uint32_t)getpid();
    for (unsigned device = 0; device < settings.devices && is_own; device++) {
        if (!management_use(device).by_this_process) continue;
        if (devices && uses < room) devices[uses] = device;
        uses++;
    }
    NEED(!devices || uses <= room, RSMI_INSUFFICIENT_SIZE);
    *count = uses;
    ANSWER(RSMI_SUCCESS);
}

// -- what it has not: the information "is not available … on the given system" -----------------------------------

static int lacks(uint32_t device) {
    CALL_OF(device, true);
    ANSWER(RSMI_NOT_SUPPORTED);
}
#define LACKS(name) \
    EXPORT int name(uint32_t device) { return lacks(device); }
LACKS(rsmi_dev_energy_count_get)
LACKS(rsmi_dev_fan_rpms_get)
LACKS(rsmi_dev_fan_speed_get)
LACKS(rsmi_dev_fan_speed_max_get)
LACKS(rsmi_dev_power_ave_get)
LACKS(rsmi_dev_power_get)
LACKS(rsmi_dev_temp_metric_get)
