// A kernel that reads or writes where no memory is: on a device that is an error of the kernel, and so it is here,
// where the system would end the whole process.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void fault_begin(void);  // this thread runs a kernel, which goes on at watch_jump when it ends before its time
void fault_end(void);

uint64_t fault_address(void);  // of the last such kernel of this thread

// The same for a thread that works beside the one that launched a kernel (workers.h). It has a stack for signals of its
// own, says when it runs blocks, and leaves them where it is told to stop.
void fault_begin_beside(char *stack, size_t bytes);
void fault_run_beside(bool run);
void fault_stop_beside(bool stop);
