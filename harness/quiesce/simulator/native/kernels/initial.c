#include "kernels/initial.h"

#include <stdlib.h>

#include "kernels/kernel.h"

// Their functions stay for as long as the machine does: kernels call them through addresses that variables hold.
static struct loaded {
    struct loaded *next;
    struct object object;
} *first;

bool initial_write(const struct source *source, const char *variable, unsigned device) {
    char reason[OBJECT_REASON_BYTES] = "";
    struct source named = *source;
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded) return false;
    named.name = variable;
    if (!kernel_load(&loaded->object, &named, device, OBJECT_USUAL, reason) || loaded->object.info.suspends) {
        object_unload(&loaded->object);
        free(loaded);
        return false;
    }
    loaded->next = first;
    first = loaded;
    struct kernel_context context = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    return !loaded->object.block(&context);
}

void initials_close(void) {
    while (first) {
        struct loaded *loaded = first;
        first = loaded->next;
        object_unload(&loaded->object);
        free(loaded);
    }
}
