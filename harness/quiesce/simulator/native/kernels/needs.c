#include "kernels/needs.h"

#include <stdlib.h>

#include "kernels/kernel.h"
#include "machine/device.h"
#include "machine/settings.h"

// How much dynamic shared memory clients allowed, by function and device. Few kernels want any.
static struct allowed {
    uint64_t key;
    unsigned device;
    int dynamic_bytes;
} *allowed;
static uint32_t allowed_count, allowed_capacity;

static struct allowed *find_allowed(uint64_t key, unsigned device) {
    for (uint32_t i = 0; i < allowed_count; i++)
        if (allowed[i].key == key && allowed[i].device == device) return &allowed[i];
    return NULL;
}

static enum status allow(uint64_t key, unsigned device, int dynamic_bytes) {
    struct allowed *found = find_allowed(key, device);
    if (found) {
        found->dynamic_bytes = dynamic_bytes;
        return OK;
    }
    if (allowed_count == allowed_capacity) {
        uint32_t capacity = allowed_capacity ? 2 * allowed_capacity : 16;
        struct allowed *grown = realloc(allowed, capacity * sizeof *grown);
        if (!grown) return OUT_OF_MEMORY;
        allowed = grown;
        allowed_capacity = capacity;
    }
    allowed[allowed_count++] = (struct allowed){key, device, dynamic_bytes};
    return OK;
}

void needs_forget(unsigned device) {
    for (uint32_t i = allowed_count; i-- > 0;)
        if (allowed[i].device == device) allowed[i] = allowed[--allowed_count];
}

void needs_close(void) { allowed_count = 0; }

static struct kernel_needs declared(uint64_t function, const void *stub, uint64_t *key) {
    struct kernel_needs needs = {.most_threads = BLOCK_THREADS_MAX, .dynamic_bytes = SHARED_BLOCK_BYTES};
    struct source source;
    *key = stub ? (uint64_t)stub : function;
    if (!settings.kernels || settings.flavour != FLAVOUR_CUDA) return needs;
    if (!kernel_source(function, stub, key, &source)) return needs;
    const struct kernel_info *info = kernel_info(*key, &source, device_current());
    if (!info) return needs;
    int bounds = (int)info->threads_max;
    needs = (struct kernel_needs){.most_threads = bounds && bounds < BLOCK_THREADS_MAX ? bounds : BLOCK_THREADS_MAX,
                                  .shared_bytes = (int)info->declared_shared_bytes,
                                  .constant_bytes = (int)info->constant_bytes,
                                  .local_bytes = (int)info->local_bytes};
    needs.dynamic_bytes = needs.shared_bytes < SHARED_BLOCK_BYTES ? SHARED_BLOCK_BYTES - needs.shared_bytes : 0;
    return needs;
}

struct kernel_needs needs_of(uint64_t function, const void *stub) {
    uint64_t key;
    struct kernel_needs needs = declared(function, stub, &key);
    const struct allowed *set = allowed_count ? find_allowed(key, device_current()) : NULL;
    if (set) needs.dynamic_bytes = set->dynamic_bytes;
    return needs;
}

enum status needs_allow(uint64_t function, const void *stub, unsigned device, int attribute, int value) {
    enum { DYNAMIC = 8, CARVEOUT = 9, PERCENT_MAX = 100 };
    if (settings.flavour == FLAVOUR_HIP)
        return value >= -1 && (attribute == DYNAMIC || attribute == CARVEOUT) ? OK : INVALID_VALUE;
    if (attribute == CARVEOUT) return value >= -1 && value <= PERCENT_MAX ? OK : INVALID_VALUE;
    if (attribute != DYNAMIC || value < 0) return INVALID_VALUE;
    uint64_t key;
    struct kernel_needs needs = declared(function, stub, &key);
    return value + needs.shared_bytes > SHARED_OPTIN_BYTES ? INVALID_VALUE : allow(key, device, value);
}

enum status needs_attribute(uint64_t function, int attribute, int *value) {
    enum { MOST_THREADS, SHARED, CONSTANT, LOCAL, DYNAMIC = 8 };
    enum status status = module_attribute(function, attribute, value);
    if (status) return status;
    struct kernel_needs needs = needs_of(function, NULL);
    switch (attribute) {
        case MOST_THREADS: *value = needs.most_threads; break;
        case SHARED: *value = needs.shared_bytes; break;
        case CONSTANT: *value = needs.constant_bytes; break;
        case LOCAL: *value = needs.local_bytes; break;
        case DYNAMIC: *value = needs.dynamic_bytes; break;
    }
    return OK;
}

enum status needs_blocks(uint64_t function, const void *stub, int block_threads, uint64_t shared_bytes, int *blocks) {
    struct kernel_needs needs = needs_of(function, stub);
    enum status status = occupancy_blocks(block_threads, shared_bytes + (uint64_t)needs.shared_bytes, blocks);
    bool refused = block_threads > needs.most_threads || shared_bytes > (uint64_t)needs.dynamic_bytes;
    if (!status && settings.flavour == FLAVOUR_CUDA && refused) *blocks = 0;
    return status;
}
