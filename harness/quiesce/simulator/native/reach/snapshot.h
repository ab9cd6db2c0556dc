// A search through the memory of this process as it is at one moment, while its other threads go on.
#pragma once

#include <stdbool.h>

// Runs `search` in a copy of the process that the kernel makes, and waits for its end. No handler of fork() runs, no
// signal reaches the copy, and it ends with the client. What `search` is to tell it writes to shared memory. Returns
// whether it came to its end: false as well where no copy could be made, or where it took too long, as one does that
// waits for a lock which nobody holds in the copy.
bool snapshot_search(void (*search)(void));
void snapshot_prepared(void);  // for `search`: it takes no more locks of the C library

// For `search`: calls `read` with a range that may turn out not to be readable. What lies behind the page at which
// that was seen is read again from the next page on.
void snapshot_read(unsigned long start, unsigned long end, void (*read)(unsigned long start, unsigned long end));
