// The stack of a thread that is in exit(): what lies below the frame that called it is the C library's. There may still
// be what functions left there that have returned long ago, as main() has: nobody's variable, but it looks like one. The
// same holds for an interpreter that takes itself down.
#pragma once

#include <stdint.h>

// Notes the ranges of this thread's stack, up to `end`, in which a variable may lie: the frames of those who called
// exit(), and the registers that exit() and its like saved for them; outside exit() all from the caller on.
void exit_frames_note(uint64_t end);
void exit_frames_each(void (*see)(uint64_t start, uint64_t end));
