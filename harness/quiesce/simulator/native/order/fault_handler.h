// The process's handler of SIGSEGV while pages are protected. It comes first, whatever handlers the program installs
// before or afterwards: the program sees its own, which get what is not ours.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// `meets` says whether an access may be tried again, with the state of the thread as a handler gets it.
bool fault_handler_install(bool (*meets)(uint64_t address, const void *state));

// Whether faults come here: not if the program installed a handler without the C library.
bool fault_handler_is_first(void);

void fault_handler_remove(void);
