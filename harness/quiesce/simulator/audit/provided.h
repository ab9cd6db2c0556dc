// The functions that the libraries of this run have: the simulated ones, and stubs for others.
#pragma once

#include <link.h>

#include "dynamic_symbols.h"

#define SIMULATOR_NAME "libquiesce-simulator.so"  // harness/quiesce/simulator/runtime/build.py

typedef struct {
    dynamic_symbols simulator, front;  // front: the library of the run that stands for the runtime
} provided;

// Find the libraries among those that are loaded beside an object; 0 where they are not.
int provided_open(provided *by, const struct link_map *beside);

// Return the address of a function, or 0.
ElfW(Addr) provided_find(const provided *by, const char *name);
