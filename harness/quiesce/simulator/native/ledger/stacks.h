// Where calls come from: native return addresses and Python frames. stack_log.h has where they are kept.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/settings.h"

// Opens a log in `folder` or (empty) in memory that nobody else sees. Returns false and sets errno.
bool stacks_open(const char *folder);
void stacks_close(void);
void stacks_new_call(void);  // what was taken belongs to the call before

// The number of the calling thread's stack: an offset in the log, in units of 8 bytes; 0: there is no room for it.
uint32_t stacks_take(void);

// The same of the call that is under way, taken at most once in it; 0 where no stacks are kept.
static inline uint32_t stack_of_call(void) { return __builtin_expect(settings.stacks, 0) ? stacks_take() : 0; }
