// Puts what a launch has touched in order (touched.c). Kernels that follow indices touch thousands of cells in any
// order: to compare them two by two takes a millisecond, and digit by digit a tenth of that.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Where an item comes in order: kinds of use one after another, and the places of each.
struct touched_key {
    uint64_t place;
    uint32_t touch, item;  // item: its number before
};

// Sorts keys; those that are equal keep their order. `spare` has as many. Returns the array that has them in order.
struct touched_key *touched_sort(struct touched_key *keys, struct touched_key *spare, size_t count);
