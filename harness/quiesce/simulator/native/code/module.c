#include "code/module.h"

#include <stdlib.h>
#include <string.h>

#include "code/image.h"
#include "code/ptx.h"
#include "code/registration.h"
#include "code/source.h"
#include "code/variable.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/unsimulated.h"
#include "machine/device.h"
#include "machine/settings.h"
#include "order/capture.h"

#define FUNCTION_BASE 0x3ed000000000ull
#define FUNCTION_STEP 16ull

struct module {
    uint64_t serial;
    unsigned device;
    const char *image;  // a copy; NULL where it can't be looked through
    size_t bytes;
    struct variables *variables;  // NULL where there is no image
    struct architectures architectures;
    struct ptx ptx;  // where kernels run; without content: there is none
};

static struct function {
    struct module *module;  // NULL once that was unloaded
    uint64_t serial;        // of the module
    char *name;
    const void *stub;  // of the client's own code, which has no module; else NULL
} *functions;
static uint32_t functions_count, functions_capacity;

// -- images ----------------------------------------------------------------------------------------------------------

static bool may_have(const struct module *module, const char *name) {
    return !module->image || memmem(module->image, module->bytes, name, strlen(name)) != NULL;
}

static void delete(struct module *module) {
    variables_delete(module->variables);
    ptx_forget(&module->ptx);
    free((char *)module->image);
    free(module);
}

// Text ends with a NUL in the copy too.
static enum status look_through(struct module *module, const char *image, size_t room) {
    module->bytes = image_length(image, room);
    if (module->bytes > room) return INVALID_IMAGE;  // it was cut off
    if (!module->bytes) return OK;
    char *copy = calloc(1, module->bytes + 1);
    if (!copy) return OUT_OF_MEMORY;
    module->image = memcpy(copy, image, module->bytes);
    module->variables = variables_read(copy, module->bytes);
    return module->variables ? variables_place(module->variables, module->device) : OUT_OF_MEMORY;
}

// Looks for what can be compiled, in an image that the client may give back. It is this that runs, whatever else the
// image has.
static enum status take_ptx(struct module *module, const char *image, size_t room) {
    if (!settings.kernels || settings.flavour != FLAVOUR_CUDA) return OK;
    if (!ptx_find(&module->ptx, image, room, device_capability(), false)) return OK;
    module->architectures = (struct architectures){module->ptx.architecture, device_capability()};
    if (!module->variables) module->variables = variables_read_ptx(&module->ptx);
    return module->variables ? variables_place(module->variables, module->device) : OK;
}

// Drivers since 12.3 load modules during a capture; clients such as Warp rely on it.
static enum status forbid_in_capture(void) {
    enum { ALLOWED_SINCE = 12030 };
    bool allowed = settings.flavour == FLAVOUR_CUDA && device_release() >= ALLOWED_SINCE;
    return allowed ? OK : capture_forbid_unsafe();
}

static enum status load(const void *image, size_t room, uint64_t *handle) {
    enum status status = forbid_in_capture();
    if (status) return status;
    struct module *module = calloc(1, sizeof *module);
    if (!module) return OUT_OF_MEMORY;
    module->device = device_current();
    if (settings.flavour == FLAVOUR_CUDA) module->architectures = image_architectures(image, room, device_capability());
    status = look_through(module, image, room);
    if (!status) status = take_ptx(module, image, room);
    *handle = status ? 0 : handle_make(THING_MODULE, module, module->device, &module->serial, false);
    if (*handle) return OK;
    delete(module);
    return status ? status : OUT_OF_MEMORY;
}

enum status module_load(const void *image, uint64_t *handle) { return load(image, SIZE_MAX, handle); }

enum status module_load_file(const char *path, uint64_t *handle) {
    char *content;
    size_t bytes;
    enum status status = image_from_file(path, &content, &bytes);
    if (status) return status;
    status = load(content, bytes, handle);
    free(content);
    return status;
}

enum status module_unload(uint64_t handle) {
    struct module *module = handle_find(THING_MODULE, handle);
    if (!module) return INVALID_HANDLE;
    enum status status = variables_exist(module->variables) ? capture_forbid_unsafe() : OK;  // as a free
    if (status) return status;
    for (uint32_t i = 0; i < functions_count; i++)
        if (functions[i].module == module) functions[i].module = NULL;
    handle_drop(handle);
    delete(module);
    return OK;
}

enum status module_variable(uint64_t handle, bool of_library, const char *name, uint64_t *address,
                            uint64_t *size_bytes, const char *function) {
    static const char INSTEAD[] =
        "of a compressed image, or for a variable that holds an address: load a plain cubin, code object or PTX";
    struct module *module = handle_find(THING_MODULE, handle);
    if (!module) return INVALID_HANDLE;
    if (!module->variables) return unsimulated(function, INSTEAD);
    unsigned device = of_library ? device_current() : module->device;
    enum status status = variables_find(module->variables, device, name, address, size_bytes);
    if (!status && !*address) {  // the first time on this device
        status = variables_place(module->variables, device);
        if (!status) status = variables_find(module->variables, device, name, address, size_bytes);
    }
    if (status == NOT_SUPPORTED) {
        const struct ptx *ptx = module->ptx.content ? &module->ptx : NULL;
        status = source_variable(&(struct source){name, ptx, module->variables, NULL}, name, device, address);
    }
    return status == NOT_SUPPORTED ? unsimulated(function, INSTEAD) : status;
}

// -- functions -------------------------------------------------------------------------------------------------------

static enum status add_function(struct function made, uint64_t *function) {
    if (functions_count == functions_capacity) {
        uint32_t capacity = functions_capacity ? 2 * functions_capacity : 64;
        struct function *grown = realloc(functions, capacity * sizeof *grown);
        if (!grown) return OUT_OF_MEMORY;
        functions = grown;
        functions_capacity = capacity;
    }
    *function = FUNCTION_BASE + functions_count * FUNCTION_STEP;
    functions[functions_count++] = made;
    return OK;
}

enum status module_function_of_stub(const void *stub, uint64_t *function) {
    const char *name;
    if (!function_binary(stub, &name)) return INVALID_DEVICE_FUNCTION;
    for (uint32_t i = 0; i < functions_count; i++)
        if (functions[i].stub == stub) {
            *function = FUNCTION_BASE + i * FUNCTION_STEP;
            return OK;
        }
    return add_function((struct function){.stub = stub}, function);
}

enum status module_function(uint64_t handle, const char *name, uint64_t *function) {
    struct module *module = handle_find(THING_MODULE, handle);
    if (!module) return INVALID_HANDLE;
    if (!*name || !may_have(module, name)) return NOT_FOUND;
    for (uint32_t i = 0; i < functions_count; i++)
        if (functions[i].module == module && !strcmp(functions[i].name, name)) {
            *function = FUNCTION_BASE + i * FUNCTION_STEP;
            return OK;
        }
    char *copy = strdup(name);
    if (!copy) return OUT_OF_MEMORY;
    return add_function((struct function){module, module->serial, copy, NULL}, function);
}

bool module_source(uint64_t function, struct source *source) {
    uint64_t index = (function - FUNCTION_BASE) / FUNCTION_STEP;
    *source = (struct source){0};
    if (function < FUNCTION_BASE || index >= functions_count) return false;
    if (functions[index].stub) return source_of_function(functions[index].stub, device_capability(), source);
    if (!functions[index].module) return false;
    const struct module *module = functions[index].module;
    source->name = functions[index].name;
    source->ptx = module->ptx.content ? &module->ptx : NULL;
    source->variables = module->variables;
    return true;
}

bool module_has_function(uint64_t function) {
    uint64_t index = (function - FUNCTION_BASE) / FUNCTION_STEP;
    if (function < FUNCTION_BASE || function % FUNCTION_STEP || index >= functions_count) return false;
    const char *name;
    if (functions[index].stub) return function_binary(functions[index].stub, &name);
    if (!functions[index].module)
        ledger_see_wrong((struct observation){
            .seen = SEEN_DEAD_HANDLE, .thing = THING_MODULE, .address = function, .object = functions[index].serial});
    return functions[index].module != NULL;
}

enum status module_attribute(uint64_t function, int attribute, int *value) {
    enum { MOST_THREADS, SHARED, CONSTANT, LOCAL, REGISTERS, PTX, BINARY, CACHE, DYNAMIC, CARVEOUT, ATTRIBUTES };
    static const int VALUES[ATTRIBUTES] = {
        [MOST_THREADS] = 1024, [REGISTERS] = 32, [DYNAMIC] = SHARED_BLOCK_BYTES, [CARVEOUT] = -1};
    if (!module_has_function(function)) return INVALID_HANDLE;
    if (attribute < 0 || attribute >= ATTRIBUTES) return INVALID_VALUE;
    const struct function *of = &functions[(function - FUNCTION_BASE) / FUNCTION_STEP];
    struct architectures found =
        of->stub ? function_architectures(of->stub, device_capability()) : of->module->architectures;
    *value = attribute == PTX ? found.ptx : attribute == BINARY ? found.binary : VALUES[attribute];
    if ((attribute == PTX || attribute == BINARY) && !*value) *value = device_capability();
    return OK;
}

// -- occupancy -------------------------------------------------------------------------------------------------------

// The figures are those that device.c gives: 2048 threads for a multiprocessor, 64 of these, and at most 32 blocks on
// each, as on devices of compute capability 8.0 (CUDA C++ Programming Guide, "Compute Capabilities").
enum { THREADS = 2048, BLOCK_THREADS = 1024, MULTIPROCESSORS = 64, BLOCKS = 32, SHARED_STEP_BYTES = 128 };

// How many blocks with so much shared memory a multiprocessor has room for.
static uint64_t occupancy_by_memory(uint64_t shared_bytes) {
    if (settings.flavour == FLAVOUR_HIP) return !shared_bytes ? BLOCKS : SHARED_BLOCK_BYTES / shared_bytes;
    if (shared_bytes > SHARED_OPTIN_BYTES) return 0;
    uint64_t taken = (shared_bytes + SHARED_RESERVED_BYTES + SHARED_STEP_BYTES - 1) / SHARED_STEP_BYTES;
    return SHARED_MULTIPROCESSOR_BYTES / (taken * SHARED_STEP_BYTES);
}

enum status occupancy_blocks(int block_threads, uint64_t shared_bytes, int *blocks) {
    if (block_threads <= 0) return INVALID_VALUE;
    int warp = settings.flavour == FLAVOUR_HIP ? 64 : 32;
    int threads = (block_threads + warp - 1) / warp * warp;
    int fitting = block_threads > BLOCK_THREADS ? 0 : THREADS / threads;
    if (fitting > BLOCKS) fitting = BLOCKS;
    uint64_t by_memory = occupancy_by_memory(shared_bytes);
    *blocks = by_memory < (uint64_t)fitting ? (int)by_memory : fitting;
    return OK;
}

uint64_t occupancy_whole(int blocks) { return (uint64_t)blocks * MULTIPROCESSORS; }

enum status occupancy_size(uint64_t shared_bytes, int limit, int *grid, int *block) {
    int blocks;
    if (limit < 0) return INVALID_VALUE;
    *block = limit && limit < BLOCK_THREADS ? limit : BLOCK_THREADS;
    enum status status = occupancy_blocks(*block, shared_bytes, &blocks);
    *grid = blocks * MULTIPROCESSORS;
    return status;
}

void modules_close(void) {
    for (uint32_t i = 0; i < functions_count; i++) free(functions[i].name);
    free(functions);
    functions = NULL;
    functions_count = functions_capacity = 0;
}
