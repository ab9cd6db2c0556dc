// The stack of a thread that is in exit(): below the frame that called it, it is the C library's. Functions that have
// returned long ago, as main() has, left values there that look like variables and are nobody's. The same holds for an
// interpreter that takes itself down.
#pragma once

#include <stdint.h>

// Notes the ranges of this thread's stack, up to `end`, in which a variable may lie: the frames of those who called
// exit(), and the registers that exit() and its like saved for them; outside exit() all from the caller on.
void exit_frames_note(uint64_t end);
void exit_frames_each(void (*see)(uint64_t start, uint64_t end));
