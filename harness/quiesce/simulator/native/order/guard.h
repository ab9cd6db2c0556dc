// Accesses of the host to pinned, registered and managed memory that pending work uses. Its pages are protected from
// the call that puts the work on a stream until the host waits for it, so that an access in between faults. That is
// recorded, and the access goes on; the judge knows what orders the two.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct stream;
struct work;

// Protects what a copy or fill that returned before it was complete uses of such memory; of a kernel that runs later,
// whole blocks that its arguments name: what it uses of them is known when it has run.
void guard_set(const struct stream *stream, const struct work *work);

// The same for what a kernel has used that runs before its launch returns. `number`: of the launch's observation.
void guard_launching(const struct stream *stream, uint64_t number);  // NULL: no more
void guard_launched(uint64_t number, uint64_t start, uint64_t end, bool writes);

// Work on `after` comes after what is on `before` by now.
void guard_order(struct stream *after, const struct stream *before);
void guard_order_legacy(unsigned device);  // the same of the default stream and all blocking ones

// The host knows that the work of a stream that was put there before an observation is complete, and all that came
// before it. More may be let go than that, never less: a system call fails with EFAULT where memory is protected.
void guard_release(const struct stream *stream, uint64_t before);
void guard_release_device(unsigned device);
void guard_release_all(void);
void guard_stop(void);  // from now on the order of accesses is not known: none is protected any more

// Registered memory is the client's own again.
void guard_leave_alone(uint64_t start, uint64_t size_bytes);

// The runtime itself uses pages in between.
void guard_suspend(uint64_t start, uint64_t size_bytes);
void guard_resume(uint64_t start, uint64_t size_bytes);
void guard_suspend_all(void);
void guard_resume_all(void);

// For a handler of SIGSEGV, which was given `state`: whether an access faulted because of this. It may be tried again.
bool guard_meet(uint64_t address, const void *state);

// For a call that hands memory to the system. No page of the memory is protected from `guard_lift` on, which says
// whether one was, to `guard_restore`. In between stands what was used, and in whose name.
bool guard_is_any(void);
bool guard_lift(uint64_t start, uint64_t size_bytes);
void guard_used(uint64_t start, uint64_t size_bytes, bool writes, const char *access);
void guard_restore(void);

void guards_close(void);
