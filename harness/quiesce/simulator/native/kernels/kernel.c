#include "kernels/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/request.h"
#include "kernels/uncomputed.h"

enum { BUCKETS = 4096 };

static struct kernel *buckets[BUCKETS];

static struct kernel **bucket_of(uint64_t key) { return &buckets[(key >> 4 ^ key >> 16) % BUCKETS]; }

// Gives the code the addresses of the variables that it uses.
static bool link_variables(struct kernel *kernel, const struct source *source, char reason[OBJECT_REASON_BYTES]) {
    for (unsigned i = 0; i < kernel->object.info.variable_count; i++) {
        const struct kernel_variable *variable = &kernel->object.variables[i];
        enum status status = source_variable(source, variable->name, kernel->device, variable->address);
        if (!status) continue;
        const char *why = status == OUT_OF_MEMORY   ? "the device has no memory for it"
                          : status == NOT_SUPPORTED ? "its first value can't be read from the PTX"
                                                    : "it is not in the PTX";
        snprintf(reason, OBJECT_REASON_BYTES, "it uses the variable '%.100s', and %s", variable->name, why);
        return false;
    }
    return true;
}

// Returns whether it can be run; else the reason is written.
static bool make(struct kernel *kernel, const struct source *source, char reason[OBJECT_REASON_BYTES]) {
    if (!source->ptx) {
        snprintf(reason, OBJECT_REASON_BYTES, "its image has machine code only, and no PTX");
        return false;
    }
    struct answer answer = request_kernel(source->ptx, source->name);
    if (answer.is_refused) snprintf(reason, OBJECT_REASON_BYTES, "%s", answer.content ? answer.content : "");
    bool made = !answer.is_refused && answer.content &&
                object_load(&kernel->object, answer.content, answer.bytes, reason) &&
                link_variables(kernel, source, reason);
    free(answer.content);
    if (!made) object_unload(&kernel->object);
    return made;
}

const struct kernel *kernel_find(uint64_t key, const struct source *source, unsigned device) {
    uint64_t identity = source->ptx ? source->ptx->identity : 0;
    struct kernel **bucket = bucket_of(key), *kernel;
    for (kernel = *bucket; kernel; kernel = kernel->next)
        if (kernel->key == key && kernel->identity == identity && kernel->device == device &&
            !strcmp(kernel->name, source->name))
            return kernel->object.memory ? kernel : NULL;
    kernel = malloc(sizeof *kernel);
    char *name = strdup(source->name);
    if (!kernel || !name) {
        free(kernel);
        free(name);
        return NULL;
    }
    *kernel = (struct kernel){.next = *bucket, .key = key, .identity = identity, .device = device, .name = name};
    *bucket = kernel;
    char reason[OBJECT_REASON_BYTES] = "";
    if (make(kernel, source, reason)) return kernel;
    uncomputed_note(name, reason);
    return NULL;
}

void kernels_close(void) {
    for (unsigned i = 0; i < BUCKETS; i++)
        while (buckets[i]) {
            struct kernel *kernel = buckets[i];
            buckets[i] = kernel->next;
            object_unload(&kernel->object);
            free(kernel->name);
            free(kernel);
        }
}
