// Memory of blocks that run: its threads, and its shared memory. What one kernel needed is kept for the next.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { ROOMS_MAX = 4096 };  // blocks that run at the same time

struct room {
    char *memory, *shared;  // threads are where it begins; shared memory ends where it ends
    size_t bytes, mapped_bytes;
};

// The memory of one of the blocks that run. After it lies memory that nobody may touch: 32 bits of an address in shared
// memory never lead beyond it. NULL: the machine has no more.
struct room *room_take(unsigned number, size_t threads_bytes, size_t shared_bytes);

void rooms_give_back(void);  // all but the first ones, which the next kernel will use
void rooms_close(void);
void rooms_range(void (*add)(const void *start, size_t bytes));  // they keep old content
