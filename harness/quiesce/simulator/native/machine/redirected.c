#include "machine/redirected.h"

#include <dlfcn.h>
#include <link.h>

const struct link_map *quiesce_redirected[REDIRECTED_MAX];

bool is_redirected(const void *address) {
    Dl_info found;
    struct link_map *in;
    if (!dladdr1(address, &found, (void **)&in, RTLD_DL_LINKMAP)) return false;
    for (unsigned i = 0; i < REDIRECTED_MAX; i++)
        if (quiesce_redirected[i] == in) return true;
    return false;
}
