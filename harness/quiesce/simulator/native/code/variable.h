// Variables of modules: device memory that belongs to a module and goes with it.
//
// They are laid out when the module is loaded, which is when a device takes the memory, and hold at first what the
// image says. A library's (cuLibraryLoadData) exist once for each device that asks for them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/status.h"

struct ptx;
struct variables;

enum variable_space { VARIABLE_GLOBAL, VARIABLE_MANAGED, VARIABLE_CONSTANT };

// Memory of one variable, which belongs to what it is part of; `content` NULL: zeros. Its name is noted in a file next
// to the ledger, with a line for each: the number of its allocation's observation, its address, and the name
// (quiesce.simulator.runtime.device_code).
enum status variable_allocate(enum variable_space space, unsigned device, uint64_t size_bytes, const void *content,
                              const char *name, uint64_t *address);
void variable_free(enum thing thing, uint64_t address);  // as a client's is freed, when the devices are done

// Reads an image: an ELF file, a bundle of such, or text that ends with a NUL. Returns NULL where memory runs out.
struct variables *variables_read(const char *image, size_t bytes);

struct variables *variables_read_ptx(const struct ptx *ptx);

bool variables_exist(const struct variables *variables);  // any

// Gives all of them memory of a device, unless they have it.
enum status variables_place(struct variables *variables, unsigned device);

// The same for one of them.
enum status variables_place_one(struct variables *variables, const char *name, unsigned device);

// What one has on a device that they were placed on. NOT_FOUND: there is none of that name. NOT_SUPPORTED: what it
// holds can't be read from the image.
enum status variables_find(const struct variables *variables, unsigned device, const char *name, uint64_t *address,
                           uint64_t *size_bytes);

// Notes that one holds what it should at first, although the image can't be read.
void variables_written(struct variables *variables, unsigned device, const char *name, bool written);

// What one of that size holds at first; NULL: zeros. False: there is none, or it can't be read from the image.
bool variables_initial(const struct variables *variables, const char *name, uint64_t size_bytes, const void **content);

// Frees them; their memory is freed as a client's is, when the devices are done.
void variables_delete(struct variables *variables);
