// At exit: which live things can somebody still reach?
//
// A block whose address stands nowhere in the process's memory is lost for certain: nobody can free it any more. One
// whose address does is held, by a cache or a global, which may be meant so. This is the distinction of Valgrind's
// memcheck and of LeakSanitizer; like theirs the search is conservative, for a number may look like an address.
#pragma once

// Marks the entries of the live table that are reachable, beside those that were marked before: a thing is kept by an
// interpreter that takes itself down, or by what is left then. reach_forget() begins anew.
void reach_mark(void);
void reach_forget(void);

// The library itself keeps handles and addresses that are to be found only where a client keeps them.
#define HIDDEN(number) (~(number))
