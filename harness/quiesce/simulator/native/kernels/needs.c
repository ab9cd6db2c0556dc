#include "kernels/needs.h"

#include "kernels/kernel.h"
#include "machine/device.h"
#include "machine/settings.h"

enum { SHARED_BYTES = 49152 };  // of a block that asks for no more

struct kernel_needs needs_of(uint64_t function, const void *stub) {
    struct kernel_needs needs = {.most_threads = BLOCK_THREADS_MAX, .dynamic_bytes = SHARED_BYTES};
    uint64_t key;
    struct source source;
    if (!settings.kernels || settings.flavour != FLAVOUR_CUDA) return needs;
    if (!kernel_source(function, stub, &key, &source)) return needs;
    const struct kernel_info *info = kernel_info(key, &source, device_current());
    if (!info) return needs;
    int bounds = (int)info->threads_max;
    needs = (struct kernel_needs){.most_threads = bounds && bounds < BLOCK_THREADS_MAX ? bounds : BLOCK_THREADS_MAX,
                                  .shared_bytes = (int)info->declared_shared_bytes,
                                  .constant_bytes = (int)info->constant_bytes,
                                  .local_bytes = (int)info->local_bytes};
    needs.dynamic_bytes = needs.shared_bytes < SHARED_BYTES ? SHARED_BYTES - needs.shared_bytes : 0;
    return needs;
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
    if (!status && block_threads > needs.most_threads) *blocks = 0;
    return status;
}
