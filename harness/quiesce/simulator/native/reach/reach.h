// Which live things can somebody still give back?
//
// A block whose address stands nowhere that counts is lost for certain: nobody can free it any more. As LeakSanitizer
// does, it looks from roots (variables of the program and its libraries, stacks, thread-local variables) through memory
// in use: blocks of the C heap and of CPython's (heap_malloc.h, heap_python.h), pinned, managed and device memory. What
// was freed owns nothing. Memory of an allocator that is not known here counts as a root once something points to it
// (regions.h), for it may be in use. The search is conservative, for a number may look like an address.
#pragma once

enum reach {  // in ascending order: of two searches the higher counts
    REACH_LOST,
    REACH_INDIRECTLY_LOST,  // its address stands in memory in use that is lost itself
    REACH_UNKNOWN,          // it stands in memory of which nobody here can say whether it is in use
    REACH_HELD,
};

// Enters into the live table how each thing is reached, beside what was found before: a thing is kept by an interpreter
// that takes itself down, or by what is left then. reach_forget() begins anew.
void reach_mark(void);
void reach_forget(void);
