// Hints about managed memory: what clients say of where it should be. They move nothing here, and have to be right.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/status.h"

// `place` is a device's number, -1 for the host. Later forms of these functions have a structure of two ints instead, a
// kind of place and a number, which is passed in one word as well.
enum status managed_advise(uint64_t address, uint64_t size_bytes, int advice, uint64_t place, bool is_structure);
enum status managed_prefetch(uint64_t address, uint64_t size_bytes, uint64_t place, bool is_structure);
