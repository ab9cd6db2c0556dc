// Variables of a client's own device code (__device__, __constant__, __managed__).
//
// A compiler makes a shadow of each on the host, and registers its address with the fatbin that the variable is in. It
// is the only name that a client has for the variable, which is memory of a device: each device has its own from the
// first use on, with the values that the image gives it (variable.h). The shadow of a managed variable holds its
// address, which a client reads from there.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"

struct registered_binary;

// `name` has to live as long as the binary is registered. Called while libraries are loaded, without the lock.
void symbol_register(struct registered_binary *binary, uint64_t shadow, const char *name, uint64_t size_bytes,
                     bool is_constant);
// `initial`: its first value, as HIP's compilers hand it over; NULL: the image has it.
void symbol_register_managed(struct registered_binary *binary, void **shadow, const char *name, uint64_t size_bytes,
                             const void *initial);

// Allocates the managed variables of a binary and writes their addresses into the shadows; `unclear`: whether one of
// them can't be given its value, as symbol_is_unclear() says.
enum status symbols_manage(const struct registered_binary *binary, bool *unclear);

// The size of the variable whose shadow begins at an address, or 0: none does.
uint64_t symbol_size(uint64_t shadow);

// Where that variable lies on the current device. INVALID_SYMBOL: there is none.
enum status symbol_address(uint64_t shadow, uint64_t *address);

// Where a variable lies on a device, by the name that a kernel of the same binary has for it. NOT_FOUND: it has no
// shadow. NOT_SUPPORTED: it holds what can't be read from its image.
enum status symbol_of_binary(const struct registered_binary *binary, const char *name, unsigned device,
                             uint64_t *address);

void symbol_of_binary_written(const struct registered_binary *binary, const char *name, unsigned device, bool written);

// Which binary registered it, and under which name. NULL: none.
struct registered_binary *symbol_binary(uint64_t shadow, const char **name);

// Whether it still holds what can't be read from its image. A client that writes it ends that.
bool symbol_is_unclear(uint64_t shadow);
void symbol_write(uint64_t shadow);

void symbols_reset(unsigned device);  // a device loses its variables; the next use makes them anew
void symbols_close(void);
