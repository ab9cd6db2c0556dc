#include "kernels/list.h"

#include <stdlib.h>

void *list_add(struct list *list, size_t count, size_t size) {
    if (list->count + count > list->capacity) {
        size_t capacity = 2 * (list->count + count) + 64;
        void *grown = realloc(list->first, capacity * size);
        if (!grown) return NULL;
        list->first = grown;
        list->capacity = capacity;
    }
    void *place = (char *)list->first + list->count * size;
    list->count += count;
    return place;
}

void list_free(struct list *list) {
    free(list->first);
    *list = (struct list){0};
}
