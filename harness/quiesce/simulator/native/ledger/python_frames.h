// The Python frames of the calling thread, where it runs Python.
#pragma once

#include <stdbool.h>
#include <stdint.h>

void python_frames_open(void);  // looks for an interpreter in this process

extern bool python_is_known;  // there is one, of a release whose frames can be read

// Returns the number of the record of the frames that the thread is in; 0: there are none.
uint32_t python_frames_take(void);
