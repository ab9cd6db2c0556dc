// Copies that read or write memory of the client's own, which it may have given back to the system before the stream
// comes to them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Copies to memory of ours, as memcpy does, unless a page of the client's is missing: then says so in the ledger, and
// returns false.
bool client_memory_read(void *to, uint64_t from, uint64_t size_bytes);

// Copies as memcpy does, unless a page is missing on one side: then says so in the ledger, and returns false. A device
// would have held the pages: it is an observation, and no fault.
bool client_memory_copy(uint64_t to, uint64_t from, uint64_t size_bytes);
