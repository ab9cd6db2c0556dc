// Memory of the host's own that a client registered, so that it counts as page-locked.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"
#include "memory/span.h"

enum status memory_register(uint64_t address, uint64_t size_bytes, unsigned flags);
enum status memory_unregister(uint64_t address);

// The registered range that an address lies in; one of THING_NONE where there is none.
struct span registered_find(uint64_t address);

// Whether the client may write to all pages of the range that an address lies in, and no stack is there. It is found
// out once: what the client does to its mappings later is not known.
bool registered_is_plain(uint64_t address);

void registered_close(void);

void registered_table(void (*add)(const void *start, size_t bytes));  // as memory_tables()
