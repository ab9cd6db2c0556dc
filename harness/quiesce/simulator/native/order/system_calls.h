// Calls of the C library by which a program hands memory to the system: `read`, `recv`, `fwrite` … The system answers
// EFAULT where pages are protected, so they are not meanwhile, and what was read or written is an access of the host.
#pragma once

// A function that the loader's module leads here (audit/system_calls.c); the last row has no name.
struct system_call_row {
    const char *name;
    void *original, *target;
};

// NULL: the module is not there. It writes this.
extern __attribute__((visibility("default"))) struct system_call_row *quiesce_system_calls;

void system_calls_open(void);
void system_calls_close(void);
