// glibc's malloc: its heaps as they lie in memory, chunk by chunk, and which chunks are in use.
//
// A chunk begins with two words: the size of the chunk before it, where that is free, and its own size. The lowest bits
// of its size say that the chunk before is in use (1), that it is a mapping of its own (2), and that it belongs to
// another arena than the first (4). So chunks can be walked from the first to the last, and the next chunk says if one
// is free (malloc/malloc.c, "Chunk representations"; the same from glibc 2.3 to 2.42). Two kinds of free chunks look
// used: fast ones, which malloc_trim() has consolidated before, and those in a thread's cache, whose second word is a
// number that this process chose (from 2.34 on; a pointer to the cache before: malloc/malloc.c, tcache_put()).
#pragma once

#include <stdbool.h>
#include <stdint.h>

// All of it is for the process that searches. Blocks of the runtime's own (own_heap.h) count as not in use.
// Gives up fast chunks, and learns what marks a chunk of a thread's cache.
void heap_malloc_prepare(void);

// Each of these adds what lies there to the known heaps.

// The heap of the first arena, which brk() extends. Returns where the known part of it ends.
uint64_t heap_malloc_walk_first(uint64_t start, uint64_t end);

// Returns where a heap of another arena ends that begins at an address, or 0: there is none.
uint64_t heap_malloc_walk_other(uint64_t start, uint64_t end);

// Returns where a mapping of malloc's own ends that begins at an address, or 0: it does not look like one.
uint64_t heap_malloc_mapping(uint64_t start, uint64_t end);
bool heap_malloc_mapping_is_own(uint64_t start, uint64_t end);
// Whether those that were found are all there are: then each is a block in use and nothing else.
bool heap_malloc_mappings_agree(unsigned count, uint64_t size_bytes);

enum { OTHER_HEAP_ALIGNMENT = 64 << 20 };  // HEAP_MAX_SIZE in malloc/arena.c
