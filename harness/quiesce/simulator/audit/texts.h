// Texts in an object that can be names of CUDA's functions, and the places that hold the address of one.
#pragma once

#include "object.h"

enum { TEXTS_MAX = 8192, TEXTS_SLOTS = 4 * TEXTS_MAX };

typedef struct {
    ElfW(Addr) place;
    const char *name;
} text;

typedef struct {
    ElfW(Addr) least, most;  // of the places
    int count;
    text slots[TEXTS_SLOTS];  // by a hash of the place; empty without a name
} texts;

// Collect the texts into zeroed memory; return how many there are, -1 where they are too many for a runtime's client.
int texts_collect(texts *into, const object *of);

// Return the name at a place, or whose address is kept there; NULL for any other.
const char *texts_find(const texts *in, ElfW(Addr) place);

// Enter a place where the address of a text will lie, once the object is relocated.
int texts_add(texts *into, ElfW(Addr) place, const char *name);
