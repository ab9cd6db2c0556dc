#include "kernels/memory_words.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096, PAGE_WORDS = PAGE_BYTES / MEMORY_WORD_BYTES, PAGES_MAX = 1 << 14, PLACES = 2 * PAGES_MAX };
enum { WORDS = 1 << 17, WORDS_MAX = WORDS / 4 * 3, NEIGHBOURS = 16, ATTEMPTS = 256 };

// Pages of memory whose words have uses. The number of a page is no address, and nobody takes it for one.
static struct page {
    uint64_t number;  // 0: none
    uint32_t place;
} pages[PLACES], *last;
static uint32_t count;  // of pages, or of words

// Words by themselves. Those that follow each other in memory do so here, for as long as they are neighbours.
struct word {
    uint64_t number;  // of words of memory
    uint32_t begun;   // the launch that uses it
    struct word_uses uses;
};

static struct word_uses *uses;  // of one page after another
static struct word *words;
static uint32_t begun;
static enum words_kept kept;

static size_t uses_bytes(void) { return (size_t)PAGES_MAX * PAGE_WORDS * sizeof *uses; }
static size_t words_bytes(void) { return WORDS * sizeof *words; }

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    madvise(memory, bytes, MADV_DONTDUMP);
    return memory;
}

// No use is known any more.
static bool forget(void) {
    memset(pages, 0, sizeof pages);
    last = NULL;
    count = 0;
    return uses ? !madvise(uses, uses_bytes(), MADV_DONTNEED) : (uses = map(uses_bytes())) != NULL;
}

bool memory_words_begin(enum words_kept how, uint32_t launch) {
    begun = launch;
    kept = how;
    if (kept == WORDS_IN_PAGES) return uses && count < PAGES_MAX / 2 ? true : forget();
    count = 0;
    return words || (words = map(words_bytes()));
}

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

static struct word_uses *find_word(uint64_t number) {
    uint64_t group = number / NEIGHBOURS * 0x9e3779b97f4a7c15 >> 32, place = (number + (group >> 16)) % NEIGHBOURS;
    for (unsigned i = 0; i < ATTEMPTS && count < WORDS_MAX; i++) {
        struct word *word = &words[(group + i) * NEIGHBOURS % WORDS + place];
        if (word->begun == begun && word->number == number) return &word->uses;
        if (word->begun == begun) continue;
        count++;
        *word = (struct word){.number = number, .begun = begun};
        return &word->uses;
    }
    return NULL;
}

struct word_uses *memory_words_find(uint64_t address) {
    if (kept == WORDS_BY_THEMSELVES) return find_word(address / MEMORY_WORD_BYTES);
    uint64_t number = address / PAGE_BYTES;
    if (!last || last->number != number) last = find_page(number);
    if (!last) return NULL;
    return &uses[(size_t)last->place * PAGE_WORDS + address % PAGE_BYTES / MEMORY_WORD_BYTES];
}

void memory_words_close(void) {
    if (uses) munmap(uses, uses_bytes());
    if (words) munmap(words, words_bytes());
    uses = NULL;
    words = NULL;
    count = 0;
}

void memory_words_range(void (*add)(const void *start, size_t bytes)) {
    if (uses) add(uses, uses_bytes());
    if (words) add(words, words_bytes());
}
