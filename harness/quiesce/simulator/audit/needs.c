#include "needs.h"

#include "memory.h"

/* The loader goes through the dynamic section when it has opened an object, and has asked its modules. It finds the
   section through the public part of the object's description, and takes a name's place in the table of names for any
   distance: so a longer copy of the section does, and the object itself stays as it is. */
int needs_add(needs *more, struct link_map *map, const char *path) {
    const char *names = NULL;
    size_t count = 0;
    for (; map->l_ld[count].d_tag != DT_NULL; count++)
        if (map->l_ld[count].d_tag == DT_STRTAB) names = (const char *)map->l_ld[count].d_un.d_ptr;
    more->longer_bytes = (count + 2) * sizeof *more->longer;
    more->longer = names ? memory_map(more->longer_bytes) : NULL;
    if (!more->longer) return 0;
    if ((ElfW(Addr))names < map->l_addr) names += map->l_addr;
    for (size_t each = 0; each < count; each++) more->longer[each] = map->l_ld[each];
    ElfW(Addr) distance = (ElfW(Addr))path - (ElfW(Addr))names;
    more->longer[count] = (ElfW(Dyn)){.d_tag = DT_NEEDED, .d_un = {.d_val = distance}};
    more->of = map;
    more->own = map->l_ld;
    map->l_ld = more->longer;
    return 1;
}

void needs_end(needs *more) {
    if (!more->longer) return;
    more->of->l_ld = more->own;
    memory_unmap(more->longer, more->longer_bytes);
    more->longer = NULL;
}
