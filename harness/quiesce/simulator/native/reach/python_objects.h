// CPython's objects in memory (Include/object.h, cpython/longintrepr.h, cpython/listobject.h): how much of its block an
// object fills. The rest is what the block's last owner left.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// All of it is for the process that searches.
void python_objects_prepare(void);  // looks for an interpreter

// Where there is no interpreter each says that nothing is known.

// Whether two digits of 30 bits that lie at an address are those of an integer.
bool python_digits_are_integers(uint64_t address);

// Returns where the object ends that lies in a block: `end` for what is no object, or one whose size is not fixed.
uint64_t python_object_end(uint64_t start, uint64_t end);

// Where a list lies in a block, says where its items are; there may be room behind them.
bool python_list_items(uint64_t start, uint64_t end, uint64_t *first, uint64_t *last);
