#include "code/source.h"

#include "code/registration.h"
#include "code/symbol.h"
#include "code/variable.h"

bool source_of_function(const void *function, int device, struct source *source) {
    *source = (struct source){0};
    source->binary = function_binary(function, &source->name);
    if (source->binary) source->ptx = binary_ptx(source->binary, device);
    return source->binary != NULL;
}

static enum status find(struct variables *variables, const char *name, unsigned device, uint64_t *address) {
    uint64_t size_bytes;
    if (!variables) return NOT_FOUND;
    enum status status = variables_find(variables, device, name, address, &size_bytes);
    if (status || *address) return status;
    status = variables_place_one(variables, name, device);
    return status ? status : variables_find(variables, device, name, address, &size_bytes);
}

// A variable that a client can name has a shadow on the host; others, as texts and tables of the compiler's, do not.
enum status source_variable(const struct source *source, const char *name, unsigned device, uint64_t *address) {
    if (!source->binary) return find(source->variables, name, device, address);
    enum status status = symbol_of_binary(source->binary, name, device, address);
    return status == NOT_FOUND ? find(binary_variables(source->binary), name, device, address) : status;
}
