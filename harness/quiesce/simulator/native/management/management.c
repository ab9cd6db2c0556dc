#include "management/management.h"

#include <stdio.h>

#include "machine/device.h"
#include "machine/settings.h"
#include "memory/capacity.h"
#include "order/driver_context.h"

struct device_use management_use(unsigned device) {
    struct device_use use = {0};
    uint64_t free_bytes;
    memory_info(device, &free_bytes, &use.total_bytes);
    use.used_bytes = use.total_bytes - free_bytes;
    bool has_context = device_current() == device && (settings.flavour == FLAVOUR_HIP || driver_has_context());
    use.by_this_process = runtime_has_machine() && (use.used_bytes || has_context);
    return use;
}

static char handles[DEVICES_MAX];

void *management_handle(unsigned device) { return &handles[device]; }

bool management_device(const void *handle, unsigned *device) {
    for (unsigned i = 0; i < settings.devices; i++)
        if (handle == &handles[i]) {
            *device = i;
            return true;
        }
    return false;
}

bool management_process_name(unsigned process, char *text, size_t bytes) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/cmdline", process);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t length = fread(text, 1, bytes - 1, file);
    fclose(file);
    text[length] = 0;  // words end with NUL: the first one is the program
    return true;
}
