// Which threads changed words of shared memory by atomic operations since the last barrier: such a change and a plain
// access of another thread race (shared_checks.h). As long as there are any, compiled code tells of each other access.
// Further changes it notes itself, of words that nobody uses otherwise.
#pragma once

#include "kernels/shared_words.h"

bool shared_atomics_are_known(void);  // of the time since the last barrier
void shared_atomics_note(uint64_t offset, unsigned bytes, uint32_t thread, uint32_t site);
// One that is in no order with an access of a thread to these bytes; or NULL.
const struct last_touch *shared_atomics_meet(uint64_t offset, unsigned bytes, uint32_t thread);
