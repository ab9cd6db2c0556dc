// Who used each word of memory in the launch that runs, as far as races are looked for (memory_races.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_WORD_BYTES = 4, SITES_MAX = 1 << 27 };

// A write, a change by an atomic operation, and reads by two threads.
enum { USE_WRITE, USE_ATOMIC, USE_READ, USE_READ_TOO, USES_OF_WORD };

struct word_use {
    uint32_t moment;  // of block_order.h; one from before the launch is none
    uint32_t thread;  // of the whole grid
    uint32_t site : 27, bytes : 4, is_strong : 1;  // bytes: a bit for each of the word
};

struct word_uses {
    struct word_use all[USES_OF_WORD];
    uint32_t released;  // what threads may know that read it (block_order.h); 0: nothing
};

_Static_assert(sizeof(struct word_uses) == 52, "64 MiB of memory need 832 MiB");

// Any 64 MiB of memory that are next to each other in pages, or a few words of any memory, which costs little.
enum words_kept { WORDS_IN_PAGES, WORDS_BY_THEMSELVES };

// A launch begins, named by a number that no other one has. False: there is no memory for its words.
bool memory_words_begin(enum words_kept kept, uint32_t launch);

// The uses of the word at an address. NULL: more memory is in use than is looked at.
struct word_uses *memory_words_find(uint64_t address);

void memory_words_close(void);
void memory_words_range(void (*add)(const void *start, size_t bytes));  // where they lie
