// Functions that fail by name, for those that neither the simulated runtime nor the stubs of the run have.
#pragma once

#include "provided.h"

// Return the address of a function that says its name and returns an error, or 0.
ElfW(Addr) named_stub(const provided *by, const char *name);

// Let those that were made be run; 0 where the system refuses.
int named_stubs_finish(void);
