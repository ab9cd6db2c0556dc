// Memory of the host's own that a client registered, so that it counts as page-locked: memory_register() in memory.h.
#pragma once

#include "memory/memory.h"

// The registered range that an address lies in; one of THING_NONE where there is none.
struct span registered_find(uint64_t address);

void registered_close(void);

void registered_table(void (*add)(const void *start, size_t bytes));  // as memory_tables()
