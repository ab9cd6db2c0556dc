// Calls of the C library by which a program hands memory to the system: `read`, `recv`, `fwrite` … The system answers
// EFAULT where pages are protected, so they are not meanwhile, and what was read or written is an access of the host.
#pragma once

void system_calls_open(void);
void system_calls_close(void);
