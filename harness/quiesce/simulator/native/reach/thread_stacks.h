// The other threads' stacks: from where on each is in use, and which belong to threads that have ended.
//
// Below a thread's stack pointer lies what functions left there that have returned. The kernel tells the pointer of a
// thread that waits in a call (proc(5), /proc/pid/task/tid/syscall); of one that runs it says nothing, and the whole
// stack counts. glibc keeps the stacks of threads that have ended for new ones, with all that they left.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// In the process that is looked at: notes where the stack pointers of the other threads are.
void thread_stacks_note(void);

// Whether a thread waits in a system call that it may have made from a function which keeps registers of its callers:
// those are on no stack then. The C library saves them before it waits for a lock or a time.
bool thread_has_hidden_registers(uint32_t thread);

// Returns the lowest address in use of a stack in a range: `start` where that is not known, `end` for the stack of a
// thread that has ended, and 0 where no thread's stack lies there.
uint64_t thread_stack_in(uint64_t start, uint64_t end);
