// A kernel that reads or writes where no memory is: on a device that is an error of the kernel, and so it is here,
// where the system would end the whole process.
#pragma once

#include <stdint.h>

void fault_begin(void);  // this thread runs a kernel, which goes on at watch_jump when it ends before its time
void fault_end(void);

uint64_t fault_address(void);  // of the last such kernel
