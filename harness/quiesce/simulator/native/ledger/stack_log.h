// A log of call stacks (record_log.h), each different one kept once.
//
// It lies in a file of its own next to the ledger. runtime/stacks.py reads it and finds the names; here nothing but
// addresses is kept of native code, and the mappings that they lay in.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/record_log.h"

enum { STACKS_LAYOUT = 2, NATIVE_FRAMES_MAX = 48, PYTHON_FRAMES_MAX = 48 };

enum stack_record {
    RECORD_MAPPING = 1,  // start, end, offset in the file, then the file's name
    RECORD_TEXT = 2,     // bytes of UTF-8
    RECORD_NATIVE = 3,   // return addresses, the innermost first
    RECORD_PYTHON = 4,   // Python frames, the innermost first
    RECORD_STACK = 5,    // the numbers of one of each (0: none)
};

struct python_frame {
    uint32_t file, name;  // records of text
    uint32_t line, unused;
};

// Opens a log in `folder` or (empty) in memory that nobody else sees. Returns false and sets errno.
bool stack_log_open(const char *folder);
void stack_log_close(void);
const void *stack_log(void);  // NULL: there is none

// Return the number of a record, which is written once; 0: there is no room for it.
uint32_t stack_log_text(const char *text, uint32_t length_bytes);
uint32_t stack_log_native(const uint64_t *addresses, uint32_t count);
uint32_t stack_log_python(const struct python_frame *frames, uint32_t count);

uint32_t stack_log_stack(const uint32_t parts[2]);  // a native and a Python one; 0 is counted as lost
