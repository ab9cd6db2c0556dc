// Where calls come from: native return addresses and Python frames, each different stack kept once.
//
// They lie in a mapped file of their own beside the ledger, a log that only grows: a header, then records. A record is
// complete once `used_bytes` includes it, so that a killed process leaves a readable log. simulator/stacks.py reads it
// and finds the names; here nothing but addresses is kept of native code, and the mappings that they lay in.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lifetime/runtime.h"

enum { STACKS_LAYOUT = 2, NATIVE_FRAMES_MAX = 48, PYTHON_FRAMES_MAX = 48 };

enum stack_record {
    RECORD_MAPPING = 1,  // start, end, offset in the file, then the file's name
    RECORD_TEXT = 2,     // bytes of UTF-8
    RECORD_NATIVE = 3,   // return addresses, the innermost first
    RECORD_PYTHON = 4,   // Python frames, the innermost first
    RECORD_STACK = 5,    // the numbers of one of each (0: none)
};

struct stacks_header {
    uint64_t magic;
    uint32_t layout, unused;
    uint64_t used_bytes;  // of the file, this header included
    uint64_t lost;        // stacks that found no room
};

struct stack_head {
    uint32_t kind;
    uint32_t length_bytes;  // of what follows, without the padding to a multiple of 8
};

struct python_frame {
    uint32_t file, name;  // records of text
    uint32_t line, unused;
};

// Opens a log in `folder` or (empty) in memory that nobody else sees. Returns false and sets errno.
bool stacks_open(const char *folder);
void stacks_close(void);
const void *stacks_log(void);  // NULL: there is none
void stacks_new_call(void);  // what was taken belongs to the call before

// The number of the calling thread's stack: an offset in the log, in units of 8 bytes; 0: there is no room for it.
uint32_t stacks_take(void);

// The same of the call that is under way, taken at most once in it; 0 where no stacks are kept.
static inline uint32_t stack_of_call(void) { return __builtin_expect(settings.stacks, 0) ? stacks_take() : 0; }

// Return the number of a record, which is written once; 0: there is no room for it.
uint32_t stacks_text(const char *text, uint32_t length_bytes);
uint32_t stacks_native(const uint64_t *addresses, uint32_t count);
uint32_t stacks_python(const struct python_frame *frames, uint32_t count);
