// At exit: which live things can somebody still reach?
//
// A block whose address stands nowhere in the process's memory is lost for certain: nobody can free it any more. One
// whose address does is held, by a cache or a global, which may be meant so. This is the distinction of Valgrind's
// memcheck and of LeakSanitizer; like theirs the search is conservative, for a number may look like an address.
#pragma once

// Marks the entries of the live table that are reachable.
void reach_mark(void);

// The library itself keeps handles and addresses that are to be found only where a client keeps them.
#define HIDDEN(number) (~(number))
