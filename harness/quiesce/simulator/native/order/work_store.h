// Where pieces of work lie: apart from the client's heap, for they name what is the client's and own none of it.
#pragma once

#include <stddef.h>

struct work;

struct work *work_store_take(void);  // uninitialised, or NULL
void work_store_give(struct work *work);

// Calls `see` with what the functions of the client's are to get that are still to run.
void work_store_data(void (*see)(void *const *data));

// Every range that pieces lie in.
void work_store_ranges(void (*add)(const void *start, size_t bytes));
