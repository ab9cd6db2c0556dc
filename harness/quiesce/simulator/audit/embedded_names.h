// The functions of a CUDA runtime by the names that they hand to profilers, in files without a symbol table.
#pragma once

#include "embedded.h"
#include "object.h"

typedef enum {
    NO_NAMES,       // too few texts that could be names: this is no runtime
    UNKNOWN_NAMES,  // functions without such names, or in places that are not those of a runtime
    FOUND_NAMES,
} named;

// Find the functions. Of unknown ones, say what is wrong if they are a runtime's. The names are the object's own.
named embedded_by_names(const object *in, embedded_functions *found, const char **wrong);
