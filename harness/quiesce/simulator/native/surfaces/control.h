// What the library shows beside the vendors' functions: for quiesce's own backend, tests and stub libraries.
#pragma once

#include <stdint.h>

#include "machine/export.h"

// Starts the machine of this process anew, with settings as settings.h describes them; ends it. Returns what is wrong,
// or NULL; the text is static.
EXPORT const char *quiesce_open(const char *settings);
EXPORT const char *quiesce_check(const char *settings);  // whether it would: nothing begins
EXPORT void quiesce_close(void);

// Holds a stream until it is released or somebody waits for it. It is released by the serial that the ledger gave it,
// for it may have been destroyed meanwhile.
EXPORT int quiesce_stall(void *stream);
EXPORT int quiesce_release(uint64_t serial);

// Launches a kernel that declares what it reads (writes[i] 0) and writes (1).
EXPORT int quiesce_launch(void *stream, unsigned count, const uint64_t *addresses, const uint64_t *sizes_bytes,
                          const unsigned char *writes);

// Makes the nth call of a kind (failure.h) from now fail once.
EXPORT int quiesce_fail(int kind, uint64_t nth, int answer);

// Marks a moment in the ledger, such as the end of an iteration: what is live at marks of one name may not grow.
EXPORT int quiesce_mark(const char *name);

// Looks now for what the process can still reach, see reach.h: the live table says so.
EXPORT int quiesce_look(void);

// A stub was called (stub_code.py), which has said so on standard error: says so in the ledger. `caller` is an address
// in whoever called the stub.
EXPORT void quiesce_not_simulated(const char *function, const void *caller);

// Where this process's ledger and its log of call stacks are mapped; NULL where there is none, as in a child of fork().
EXPORT const void *quiesce_ledger(void);
EXPORT const void *quiesce_stacks(void);
EXPORT const void *quiesce_touched(void);

// How much of the C heap the runtime itself uses, see own_heap.h.
EXPORT uint64_t quiesce_own_heap(void);

// What a function does that a statically linked runtime has and nobody else: it says so, and returns an error. The
// loader's module makes such functions (audit/named_stubs.c), which jump here.
EXPORT int quiesce_answer_not_simulated(const char *function);
