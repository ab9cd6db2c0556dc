// Where a kernel comes from: its name, the PTX that it is in, and the variables that it uses.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "code/ptx.h"
#include "machine/status.h"

struct registered_binary;
struct variables;

struct source {
    const char *name;
    const struct ptx *ptx;             // NULL: there is none
    struct variables *variables;       // of the module; NULL: there are none
    struct registered_binary *binary;  // that the client's compiler registered; NULL: it is of a module
};

// That of a function of the client's own. False: nothing is known of it.
bool source_of_function(const void *function, int device, struct source *source);

// Where a variable of the source lies on a device, which gets memory for it if it has none yet. NOT_FOUND: there is
// none of that name. NOT_SUPPORTED: what it holds at first can't be told.
enum status source_variable(const struct source *source, const char *name, unsigned device, uint64_t *address);

// Gives the variable with a shadow its first value, if only the compiler can tell it. False: it can't either.
bool source_fill_symbol(uint64_t shadow);
