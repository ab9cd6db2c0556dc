// A client's own device code, as its compiler's code registers it when it is loaded: fatbins, and kernels by the
// address of a stub on the host, each with the fatbin that it is in.
#pragma once

#include <stdbool.h>

#include "code/image.h"

struct variables;

struct registered_binary {
    const void *fatbin;  // NULL once it was unregistered
    bool is_read;        // it was looked through for its variables, which are NULL where that is not possible
    struct variables *variables;
};

// NULL: no memory is left. The fatbin is looked at when it is asked about, for clients have thousands.
struct registered_binary *binary_register(const void *fatbin);
void binary_unregister(struct registered_binary *binary);  // its code goes with the library that it is part of

unsigned long binaries_unregistered(void);  // how many were

void function_register(struct registered_binary *binary, const void *function);

// What a function was compiled for, as image_architectures() says; nothing is known of one that was not registered.
struct architectures function_architectures(const void *function, int device);
