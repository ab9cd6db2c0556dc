// The Python frames of the calling thread, where it runs Python.
#pragma once

#include <stdint.h>

#include "stacks.h"

void python_frames_open(void);  // looks for an interpreter in this process

// Writes at most `room` frames, the innermost first; returns how many there are.
uint32_t python_frames(struct python_frame *frames, uint32_t room);
