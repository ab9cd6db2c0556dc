// Native call stacks. Unwinding by the compiler's tables takes microseconds, and most calls come from where another one
// came from. So a stack is remembered with the places of its return addresses, and known again by reading these.
#pragma once

#include <stdint.h>

// Finds the unwinder, which is a library. Not below the runtime's lock, which a constructor of another library may be
// waiting for.
void unwinding_load(void);

// Returns the number of the record of the native frames outside of the caller, whose frame address is given; 0: none.
uint32_t native_frames_take(const void *frame);
void native_frames_forget(void);  // the log is another one
