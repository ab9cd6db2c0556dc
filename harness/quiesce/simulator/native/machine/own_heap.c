#include "machine/own_heap.h"

#include <malloc.h>
#include <stddef.h>
#include <string.h>

// The linker has every other file of this library call these (--wrap, in build.py), and gives the C library's own
// functions the names that begin with __real_.
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void __real_free(void *block);

static uint64_t used_bytes;

// -- the mark --------------------------------------------------------------------------------------------------------

#define MARK 0xb3c5a7d19e0f4d2bull

// Where the last word lies that can be used; a sanitizer's heap gives any number of bytes.
static char *mark_in(void *block) { return (char *)block + malloc_usable_size(block) - sizeof(uint64_t); }

static size_t with_mark(size_t bytes) { return bytes > PTRDIFF_MAX ? bytes : bytes + sizeof(uint64_t); }

static void set_mark(void *block) {
    uint64_t mark = MARK ^ (uint64_t)block;
    if (block) memcpy(mark_in(block), &mark, sizeof mark);
}

bool own_heap_has(uint64_t block, uint64_t usable_bytes) {
    uint64_t word;
    if (usable_bytes < sizeof word) return false;
    memcpy(&word, (const char *)block + usable_bytes - sizeof word, sizeof word);
    return word == (MARK ^ block);
}

// A freed block keeps its content, and may be a client's next. Blocks from functions of the C library have no mark.
static void clear_mark(void *block) {
    if (block && own_heap_has((uint64_t)block, malloc_usable_size(block))) memset(mark_in(block), 0, sizeof(uint64_t));
}

// -- the count -------------------------------------------------------------------------------------------------------

// A chunk has a size field in front of what can be used of it, and a mapping of its own another word (glibc's malloc.c,
// CHUNK_HDR_SZ and memsize()); both are multiples of 16.
static uint64_t chunk_bytes(void *block) {
    return block ? (malloc_usable_size(block) + sizeof(size_t) + 15) / 16 * 16 : 0;
}

static void count(uint64_t bytes) { __atomic_fetch_add(&used_bytes, bytes, __ATOMIC_RELAXED); }

static void *counted(void *block) {
    count(chunk_bytes(block));
    set_mark(block);
    return block;
}

void *__wrap_malloc(size_t bytes) { return counted(__real_malloc(with_mark(bytes))); }

void *__wrap_calloc(size_t count, size_t bytes) {
    size_t all;
    return __builtin_mul_overflow(count, bytes, &all) ? NULL : counted(__real_calloc(1, with_mark(all)));
}

char *__wrap_strndup(const char *text, size_t bytes) {
    size_t length = strnlen(text, bytes);
    char *copy = __wrap_malloc(length + 1);
    if (!copy) return NULL;
    copy[length] = 0;
    return memcpy(copy, text, length);
}

char *__wrap_strdup(const char *text) { return __wrap_strndup(text, PTRDIFF_MAX); }

void *__wrap_realloc(void *block, size_t bytes) {
    uint64_t before = chunk_bytes(block);
    clear_mark(block);
    void *grown = __real_realloc(block, with_mark(bytes));
    set_mark(grown ? grown : block);
    if (grown) count(chunk_bytes(grown) - before);
    return grown;
}

void __wrap_free(void *block) {
    count(-chunk_bytes(block));
    clear_mark(block);
    __real_free(block);
}

uint64_t own_heap_bytes(void) { return __atomic_load_n(&used_bytes, __ATOMIC_RELAXED); }
