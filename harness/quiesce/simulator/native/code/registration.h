// Kernels of the client's own, as its compiler's code registers them when it is loaded: by the address of a stub on the
// host, each with the fatbin that it is in.
#pragma once

#include "code/image.h"

struct registered_binary;

// NULL: no memory is left. The fatbin is looked at when it is asked about, for clients have thousands.
struct registered_binary *binary_register(const void *fatbin);
void binary_unregister(struct registered_binary *binary);  // its code goes with the library that it is part of

void function_register(struct registered_binary *binary, const void *function);

// What a function was compiled for, as image_architectures() says; nothing is known of one that was not registered.
struct architectures function_architectures(const void *function, int device);
