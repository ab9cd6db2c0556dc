#include "machine/c_library.h"

#include <stddef.h>
#include <string.h>

struct c_library_row *quiesce_system_calls;

void *c_library_lead(const char *name, void *to) {
    for (struct c_library_row *row = quiesce_system_calls; row && row->name; row++)
        if (row->original && !strcmp(row->name, name)) {
            __atomic_store_n(&row->target, to ? to : row->original, __ATOMIC_RELEASE);
            return row->original;
        }
    return NULL;
}
