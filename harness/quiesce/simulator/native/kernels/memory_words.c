#include "kernels/memory_words.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096, PAGE_WORDS = PAGE_BYTES / MEMORY_WORD_BYTES, PAGES_MAX = 1 << 14, PLACES = 2 * PAGES_MAX };

// Pages of memory whose words have uses. The number of a page is no address, and nobody takes it for one.
static struct page {
    uint64_t number;  // 0: none
    uint32_t place;
} pages[PLACES], *last;
static uint32_t count;
static struct word_uses *uses;  // of one page after another

static size_t all_bytes(void) { return (size_t)PAGES_MAX * PAGE_WORDS * sizeof *uses; }

static bool map(void) {
    void *memory = mmap(NULL, all_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    madvise(memory, all_bytes(), MADV_DONTDUMP);
    uses = memory;
    return true;
}

bool memory_words_forget(void) {
    memset(pages, 0, sizeof pages);
    last = NULL;
    count = 0;
    return uses ? !madvise(uses, all_bytes(), MADV_DONTNEED) : map();
}

bool memory_words_make_room(void) { return uses && count < PAGES_MAX / 2 ? true : memory_words_forget(); }

static struct page *find_page(uint64_t number) {
    for (uint64_t at = number * 0x9e3779b97f4a7c15 >> 40;; at++) {
        struct page *page = &pages[at % PLACES];
        if (page->number == number) return page;
        if (page->number) continue;
        if (count == PAGES_MAX) return NULL;
        *page = (struct page){number, count++};
        return page;
    }
}

struct word_uses *memory_words_find(uint64_t address) {
    uint64_t number = address / PAGE_BYTES;
    if (!last || last->number != number) last = find_page(number);
    if (!last) return NULL;
    return &uses[(size_t)last->place * PAGE_WORDS + address % PAGE_BYTES / MEMORY_WORD_BYTES];
}

void memory_words_close(void) {
    if (uses) munmap(uses, all_bytes());
    uses = NULL;
}

void memory_words_range(void (*add)(const void *start, size_t bytes)) {
    if (uses) add(uses, all_bytes());
}
