// A CUDA runtime that is linked into an object statically: its public functions.
#pragma once

#include <link.h>

enum {
    FUNCTIONS_MAX = 1024,
    FUNCTIONS_LEAST = 300,     // fewer is no whole runtime: 11.2 has 340, 13.5 has 455
    NAMES_LEAST = 100,         // fewer names of functions are those of a client
    JUMP_BYTES = 14,              // what an entry has room for: jumps.c writes one there
    RUNTIME_BYTES_MAX = 1 << 20,  // an archive has one member, which linkers do not divide: 0.6 MB in 13.5
};

typedef struct {
    ElfW(Addr) address;  // as the file has it
    const char *name;    // ends with NUL
} embedded_function;

typedef struct {
    int count;
    embedded_function functions[FUNCTIONS_MAX];  // by address
} embedded_functions;

// Sort by address. Return what is wrong with them, NULL for a whole runtime whose entries can be written to.
const char *embedded_check(embedded_functions *found);

// Say whether a name is one that such a runtime may have for a public function.
int embedded_is_public(const char *name);
