#include "machine/own_heap.h"

#include <malloc.h>
#include <stddef.h>
#include <string.h>

// The linker has every other file of this library call these (--wrap, in build.py), and gives the C library's own
// functions the names that begin with __real_.
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t bytes);
void __real_free(void *block);

static uint64_t used_bytes;

// A chunk has a size field in front of what can be used of it, and a mapping of its own another word (glibc's malloc.c,
// CHUNK_HDR_SZ and memsize()); both are multiples of 16.
static uint64_t chunk_bytes(void *block) {
    return block ? (malloc_usable_size(block) + sizeof(size_t) + 15) / 16 * 16 : 0;
}

static void count(uint64_t bytes) { __atomic_fetch_add(&used_bytes, bytes, __ATOMIC_RELAXED); }

static void *counted(void *block) {
    count(chunk_bytes(block));
    return block;
}

void *__wrap_malloc(size_t bytes) { return counted(__real_malloc(bytes)); }
void *__wrap_calloc(size_t count, size_t bytes) { return counted(__real_calloc(count, bytes)); }
char *__wrap_strdup(const char *text) { return counted(__real_strdup(text)); }
char *__wrap_strndup(const char *text, size_t bytes) { return counted(__real_strndup(text, bytes)); }

void *__wrap_realloc(void *block, size_t bytes) {
    uint64_t before = chunk_bytes(block);
    void *grown = __real_realloc(block, bytes);
    if (grown) count(chunk_bytes(grown) - before);
    return grown;
}

void __wrap_free(void *block) {
    count(-chunk_bytes(block));
    __real_free(block);
}

uint64_t own_heap_bytes(void) { return __atomic_load_n(&used_bytes, __ATOMIC_RELAXED); }
