// A list that grows.
#pragma once

#include <stddef.h>

struct list {
    void *first;
    size_t count, capacity;
};

// Returns the place of so many more items. NULL: no memory is left.
void *list_add(struct list *list, size_t count, size_t size);
void list_free(struct list *list);
