#include "code/prepared.h"

#include <stdlib.h>

static struct prepared **all;
static uint32_t count, capacity;

struct prepared *prepared_of(uint64_t function) {
    for (uint32_t i = 0; i < count; i++)
        if (all[i]->function == function) return all[i];
    if (count == capacity) {
        uint32_t wanted = capacity ? 2 * capacity : 16;
        struct prepared **grown = realloc(all, wanted * sizeof *grown);
        if (!grown) return NULL;
        all = grown;
        capacity = wanted;
    }
    struct prepared *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->function = function;
    return all[count++] = made;
}

void prepared_close(void) {
    for (uint32_t i = 0; i < count; i++) free(all[i]);
    free(all);
    all = NULL;
    count = capacity = 0;
}
