// Functions of vendors' libraries that compute: launches whose code is a row of a table, in a process of the run's own
// (quiesce.libraries). The two converse: the process asks for what a call reads, and hands out what it writes. Each
// range is judged here as the accesses of a kernel are, so that no code of a library runs in the client, and nothing of
// the client is lost when that process ends.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"
#include "order/stream.h"

enum { HOSTED_NAME_BYTES = 64, HOSTED_SETTINGS = 24, HOSTED_WORDS = 32, HOSTED_FLOATS = 8, HOSTED_KEPT_BYTES = 8192 };

// A call, as quiesce.libraries.conversation has it. It is all that the process needs, so that another one can go on.
struct hosted_call {
    char name[HOSTED_NAME_BYTES];
    uint64_t object, device;  // the serial of the library's handle
    uint64_t area;            // memory of the client's own that it was given to work in, or 0
    int64_t settings[HOSTED_SETTINGS];
    uint64_t words[HOSTED_WORDS];
    double floats[HOSTED_FLOATS];
    uint64_t strange_address;  // that was read as the host's, and is memory of a device; or 0
    uint32_t strange_operand, strange_bytes;
    uint64_t kept_bytes;
    unsigned char kept[HOSTED_KEPT_BYTES];  // what the process noted when the function was called, as the host's memory
};

// What came of the beginning of a call.
struct begun {
    int answer;                     // the library's own
    const struct hosted *function;  // that is to be launched; NULL: nothing is left to do
    bool waits;                     // for its result goes to the host
};

// Begins a call. `name`: a literal. NOT_SUPPORTED, which was said: no row describes such a call, or the process can't
// be reached.
enum status hosted_begin(const char *name, struct hosted_call *call, unsigned device, struct begun *begun);

// Puts a call that began on a stream.
enum status hosted_launch(struct stream *stream, const struct begun *begun, struct hosted_call *call);

// Memory that the process has too: what lies there is no sign that a client knows it.
void hosted_range(void (*add)(const void *start, size_t bytes));

void hosted_close(void);
