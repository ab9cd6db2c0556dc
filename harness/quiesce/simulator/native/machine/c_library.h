// Functions of the C library that may lead here when a program calls them (audit/system_calls.c).
#pragma once

struct c_library_row {
    const char *name;
    void *original, *target;
};

// The last row has no name. NULL: the loader's module is not there. It writes this.
extern __attribute__((visibility("default"))) struct c_library_row *quiesce_system_calls;

// Lets calls of a function lead somewhere else, or (NULL) where they led before; returns the function itself, or NULL
// where its calls can't be led.
void *c_library_lead(const char *name, void *to);
