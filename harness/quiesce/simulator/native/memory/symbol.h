// Variables of a client's own device code (__device__, __constant__), by the addresses of their shadows on the host.
//
// A compiler makes a shadow of the same size for each, and registers it; it is the only name that a client has for the
// variable. Here the shadow's bytes are the variable: copies to it are copies to a device, in the order of a stream.
#pragma once

#include <stdint.h>

#include "memory/span.h"

void symbol_register(uint64_t address, uint64_t size_bytes);

// The size of the variable whose shadow begins at an address, or 0: none does.
uint64_t symbol_size(uint64_t address);

// The variable in which an address lies, as memory of a device; its start is 0 where it lies in none.
struct span symbol_find(uint64_t address);
