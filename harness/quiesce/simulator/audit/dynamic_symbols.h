// The names that a loaded object shares with others, in the tables by which the dynamic loader binds them.
#pragma once

#include <link.h>
#include <stddef.h>

typedef struct {
    ElfW(Addr) base;
    const Elf64_Sym *symbols;
    const char *names;
    size_t names_bytes;
    const uint32_t *gnu_hash, *sysv_hash;
} dynamic_symbols;

// Find the tables; 0 where the object has none.
int dynamic_symbols_open(dynamic_symbols *of, const struct link_map *map);

// Return the address of what the object defines under a name, or 0.
ElfW(Addr) dynamic_symbols_find(const dynamic_symbols *of, const char *name);

// Find the tables of a C library that was just mapped, and let them be written to until they are locked; 0: they have
// another form.
int dynamic_symbols_unlock(dynamic_symbols *of, struct link_map *c_library);
void dynamic_symbols_lock(const dynamic_symbols *of);

// Let a function that the object defines lie at another address for all who look for it from now on, and return the one
// that it had, or 0 where it has no such function. The table is unlocked.
ElfW(Addr) dynamic_symbols_replace(const dynamic_symbols *of, const char *name, ElfW(Addr) address);

// Return how many of the names, the last of which is NULL, the object takes from others.
int dynamic_symbols_needed(const dynamic_symbols *of, const char *const *names);
