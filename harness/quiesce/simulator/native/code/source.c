#include "code/source.h"

#include "code/registration.h"
#include "code/symbol.h"
#include "code/variable.h"
#include "machine/device.h"
#include "machine/settings.h"
#include "machine/upcalls.h"

bool source_of_function(const void *function, int device, struct source *source) {
    *source = (struct source){0};
    source->binary = function_binary(function, &source->name);
    if (source->binary) source->ptx = binary_ptx(source->binary, device);
    return source->binary != NULL;
}

static enum status find(struct variables *variables, const char *name, unsigned device, uint64_t *address) {
    uint64_t size_bytes;
    if (!variables) return NOT_FOUND;
    *address = 0;
    enum status status = variables_find(variables, device, name, address, &size_bytes);
    if ((status && status != NOT_SUPPORTED) || *address) return status;
    status = variables_place_one(variables, name, device);
    return status ? status : variables_find(variables, device, name, address, &size_bytes);
}

// A variable that a client can name has a shadow on the host; others, as texts and tables of the compiler's, do not.
static enum status find_anywhere(const struct source *source, const char *name, unsigned device, uint64_t *address) {
    if (!source->binary) return find(source->variables, name, device, address);
    enum status status = symbol_of_binary(source->binary, name, device, address);
    return status == NOT_FOUND ? find(binary_variables(source->binary), name, device, address) : status;
}

static void note_written(const struct source *source, const char *name, unsigned device, bool written) {
    uint64_t address;
    if (source->binary && symbol_of_binary(source->binary, name, device, &address) != NOT_FOUND)
        symbol_of_binary_written(source->binary, name, device, written);
    else
        variables_written(source->binary ? binary_variables(source->binary) : source->variables, device, name, written);
}

enum status source_variable(const struct source *source, const char *name, unsigned device, uint64_t *address) {
    enum status status = find_anywhere(source, name, device, address);
    if (status != NOT_SUPPORTED || !settings.kernels || !source->ptx) return status;
    note_written(source, name, device, true);  // first, for variables may hold each other's addresses
    if (upcalls.kernels.write_initial(source, name, device)) return OK;
    note_written(source, name, device, false);
    return NOT_SUPPORTED;
}

bool source_fill_symbol(uint64_t shadow) {
    struct source source = {0};
    uint64_t address;
    source.binary = symbol_binary(shadow, &source.name);
    if (!source.binary) return false;
    unsigned device = device_current();
    source.ptx = binary_ptx(source.binary, device_capability());
    return !source_variable(&source, source.name, device, &address);
}
