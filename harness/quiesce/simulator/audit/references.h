// Which functions of an object refer to texts that can be their names.
#pragma once

#include "frames.h"
#include "texts.h"

enum { REFERENCES_MAX = 8192 };

typedef struct {
    int function;  // its number among the frames
    const char *name;
} reference;

typedef struct {
    int count;
    reference all[REFERENCES_MAX];  // by function, each once
} references;

// Collect them; 0 where they are too many.
int references_collect(references *into, const frames *in, const texts *to);
