// Anonymous memory in which no heap is known: mappings of the program's own, and of allocators that can't be read here.
//
// What lies side by side is one region, with what can't be touched between: some allocators keep offsets from where all
// of it begins. A region into which nothing points is nobody's. Whoever looks for pointers says what it comes upon.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// In the order of addresses: adds memory, and takes the last of it out again where it turns out to be known.
void region_add(uint64_t start, uint64_t end);
void region_cut(uint64_t start, uint64_t end);

// Something points there.
void region_reach(uint64_t address);

// Has those be the next that were reached since the last time. False: there are none.
bool regions_turn(void);
bool region_is_next(uint64_t address);
bool region_was_reached(uint64_t address);  // also where more regions are than can be told apart
