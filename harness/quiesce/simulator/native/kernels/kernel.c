#include "kernels/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/module.h"
#include "kernels/request.h"
#include "kernels/uncomputed.h"
#include "machine/device.h"
#include "machine/settings.h"

enum { BUCKETS = 4096 };

static struct kernel *buckets[BUCKETS];

static struct kernel **bucket_of(uint64_t key) { return &buckets[(key >> 4 ^ key >> 16) % BUCKETS]; }

// Gives the code the addresses of the variables that it uses.
static bool link_variables(const struct object *object, const struct source *source, unsigned device,
                           char reason[OBJECT_REASON_BYTES]) {
    for (unsigned i = 0; i < object->info.variable_count; i++) {
        const struct kernel_variable *variable = &object->variables[i];
        enum status status = source_variable(source, variable->name, device, variable->address);
        if (!status) continue;
        const char *why = status == OUT_OF_MEMORY   ? "the device has no memory for it"
                          : status == NOT_SUPPORTED ? "its first value can't be read from the PTX"
                                                    : "it is not in the PTX";
        snprintf(reason, OBJECT_REASON_BYTES, "it uses the variable '%.100s', and %s", variable->name, why);
        return false;
    }
    return true;
}

bool kernel_load(struct object *object, const struct source *source, unsigned device, enum object_kind kind,
                 char reason[OBJECT_REASON_BYTES]) {
    if (!source->ptx) {
        snprintf(reason, OBJECT_REASON_BYTES, "its image has machine code only, and no PTX");
        return false;
    }
    struct answer answer = request_kernel(source->ptx, source->name, kind);
    if (answer.is_refused) snprintf(reason, OBJECT_REASON_BYTES, "%s", answer.content ? answer.content : "");
    bool made = !answer.is_refused && answer.content && object_load(object, answer.content, answer.bytes, reason) &&
                link_variables(object, source, device, reason);
    free(answer.content);
    if (!made) object_unload(object);
    return made;
}

bool kernel_source(uint64_t function, const void *stub, uint64_t *key, struct source *source) {
    *key = stub ? (uint64_t)stub : function;
    if (module_source(*key, source)) return true;
    return stub && source_of_function(stub, device_capability(), source);
}

static struct kernel *new_kernel(uint64_t key, const struct source *source, unsigned device) {
    struct kernel *kernel = malloc(sizeof *kernel);
    char *name = strdup(source->name);
    if (!kernel || !name) {
        free(kernel);
        free(name);
        return NULL;
    }
    uint64_t identity = source->ptx ? source->ptx->identity : 0;
    *kernel = (struct kernel){.key = key, .identity = identity, .device = device, .name = name};
    char reason[OBJECT_REASON_BYTES] = "";
    enum object_kind kind = settings.orders ? OBJECT_ONE_BY_ONE : OBJECT_USUAL;
    if (!kernel_load(&kernel->object, source, device, kind, reason)) kernel->refusal = strdup(reason);
    return kernel;
}

// NULL: no memory is left.
static struct kernel *find(uint64_t key, const struct source *source, unsigned device) {
    uint64_t identity = source->ptx ? source->ptx->identity : 0;
    struct kernel **bucket = bucket_of(key), *kernel;
    for (kernel = *bucket; kernel; kernel = kernel->next)
        if (kernel->key == key && kernel->identity == identity && kernel->device == device &&
            !strcmp(kernel->name, source->name))
            return kernel;
    kernel = new_kernel(key, source, device);
    if (!kernel) return NULL;
    kernel->next = *bucket;
    return *bucket = kernel;
}

const struct kernel *kernel_find(uint64_t key, const struct source *source, unsigned device) {
    struct kernel *kernel = find(key, source, device);
    if (!kernel || kernel->object.memory) return kernel;
    if (!kernel->is_told) uncomputed_note(kernel->name, kernel->refusal ? kernel->refusal : "");
    kernel->is_told = true;
    return NULL;
}

const struct kernel_info *kernel_info(uint64_t key, const struct source *source, unsigned device) {
    const struct kernel *kernel = find(key, source, device);
    return kernel && kernel->object.memory ? &kernel->object.info : NULL;
}

void kernel_turn(const struct kernel *found, const struct source *source) {
    struct kernel *kernel = (struct kernel *)found;  // they are all made here
    if (!settings.orders || kernel->is_turned || kernel->object.info.suspends) return;
    kernel->is_turned = true;
    char reason[OBJECT_REASON_BYTES] = "";  // without it the orders are those of blocks alone
    kernel_load(&kernel->backwards, source, kernel->device, OBJECT_BACKWARDS, reason);
}

const struct object *kernel_object(const struct kernel *found, const struct source *source, uint64_t threads) {
    struct kernel *kernel = (struct kernel *)found;
    uint64_t after = kernel->object.info.rows_after;
    char reason[OBJECT_REASON_BYTES] = "";  // without it the launch runs as it did before
    kernel->threads += threads;
    if (after && !kernel->is_asked_for_rows && kernel->threads >= after) {
        kernel->is_asked_for_rows = true;
        kernel_load(&kernel->rows, source, kernel->device, OBJECT_ROWS, reason);
    }
    return kernel->rows.memory ? &kernel->rows : &kernel->object;
}

void kernel_count_turns(const struct kernel *found, uint64_t turns) { ((struct kernel *)found)->threads += turns; }

bool kernel_is_new(const struct kernel *found) {
    struct kernel *kernel = (struct kernel *)found;
    if (kernel->runs >= settings.race_launches) return false;
    kernel->runs++;
    return true;
}

bool kernel_tells_alone(const struct kernel *found) {
    struct kernel *kernel = (struct kernel *)found;
    bool tells = !kernel->is_told_alone;
    kernel->is_told_alone = true;
    return tells;
}

void kernel_keep_length(const struct kernel *found, bool was_long) { ((struct kernel *)found)->was_long = was_long; }

void kernels_close(void) {
    for (unsigned i = 0; i < BUCKETS; i++)
        while (buckets[i]) {
            struct kernel *kernel = buckets[i];
            buckets[i] = kernel->next;
            object_unload(&kernel->object);
            object_unload(&kernel->backwards);
            object_unload(&kernel->rows);
            free(kernel->name);
            free(kernel->refusal);
            free(kernel);
        }
}
