// A client's own device code, as its compiler's code registers it when it is loaded: fatbins, and kernels by the
// address of a stub on the host, each with the fatbin that it is in.
#pragma once

#include <stdbool.h>

#include "code/image.h"
#include "code/ptx.h"

struct variables;

struct registered_binary {
    const void *fatbin;  // NULL once it was unregistered
    bool is_read;        // it was looked through for its variables, which are NULL where that is not possible
    struct variables *variables;
    bool is_searched;  // for its PTX
    struct ptx ptx;    // without content: it has none
};

// NULL: no memory is left. The fatbin is looked at when it is asked about, for clients have thousands.
struct registered_binary *binary_register(const void *fatbin);
void binary_unregister(struct registered_binary *binary);  // its code goes with the library that it is part of

unsigned long binaries_unregistered(void);  // how many were

// `name` has to live as long as the binary is registered.
void function_register(struct registered_binary *binary, const void *function, const char *name);

// The binary that a function is in, and the name that it has there. NULL: nothing is known of it.
struct registered_binary *function_binary(const void *function, const char **name);

// The PTX of a binary, looked for once; NULL: it has none.
const struct ptx *binary_ptx(struct registered_binary *binary, int device);

// The variables of a binary, read once, as far as they can be read; NULL: they can't.
struct variables *binary_variables(struct registered_binary *binary);

// What a function was compiled for, as image_architectures() says; nothing is known of one that was not registered.
struct architectures function_architectures(const void *function, int device);
