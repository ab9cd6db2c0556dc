#include "reach/roots.h"

#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/hosted.h"
#include "kernels/memory_rows.h"
#include "kernels/memory_words.h"
#include "kernels/room.h"
#include "ledger/ledger.h"
#include "machine/mappings.h"
#include "memory/places.h"
#include "memory/shadow.h"
#include "order/host_thread.h"
#include "order/work_store.h"
#include "reach/exit_frames.h"
#include "reach/heap_blocks.h"
#include "reach/heap_malloc.h"
#include "reach/heap_python.h"
#include "reach/regions.h"
#include "reach/thread_stacks.h"

enum { VARIABLES_MAX = 4096, ROOTS_MAX = 1 << 20, OWN_MAX = 4096, MAPPED_MAX = 1 << 16 };

struct range {
    uint64_t start, end;
};

// Where programs and libraries have variables, of which the kernel tells only those that came out of a file.
static struct range variables[VARIABLES_MAX];
static unsigned variables_count;

static struct found {
    struct range range;
    enum root root;
} *roots;
static unsigned roots_count;

static struct range mapped[MAPPED_MAX];  // mappings of malloc's own
static unsigned mapped_count;
static uint64_t mapped_bytes;

// Where the library itself keeps addresses that were or will be handed out, in the order of addresses: its variables
// and tables. Its blocks on the C heap have marks (own_heap.h).
static struct range own[OWN_MAX];
static unsigned own_count;

static uint64_t stack;  // an address on the stack of the thread that asks

// Ends the search: then nothing is said to be lost.
static void give_up(void) { _exit(1); }

static void add_root(uint64_t start, uint64_t end, enum root root) {
    if (start >= end) return;
    if (roots_count == ROOTS_MAX) give_up();
    roots[roots_count++] = (struct found){{start, end}, root};
}

// Returns the first of some ranges, in the order of their addresses, that ends behind an address.
static unsigned first_behind(const struct range *ranges, unsigned count, uint64_t address) {
    unsigned low = 0, high = count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add(uint64_t start, uint64_t end, enum root root) {
    for (unsigned i = first_behind(own, own_count, start); i < own_count && own[i].start < end; i++) {
        add_root(start, own[i].start, root);
        start = own[i].end;
    }
    add_root(start, end, root);
}

static void add_held(uint64_t start, uint64_t end) { add(start, end, ROOT_HELD); }

static void add_shared(uint64_t start, uint64_t end) { add(start, end, ROOT_SHARED); }

// What a client gave the library for a function of its own, such as a user object's.
static void add_data(void *const *data) { add_root((uint64_t)data, (uint64_t)(data + 1), ROOT_HELD); }

static int compare_ranges(const void *first, const void *second) {
    uint64_t left = ((const struct range *)first)->start, right = ((const struct range *)second)->start;
    return left < right ? -1 : left > right;
}

static void add_own(const void *start, size_t bytes) {
    if (bytes && own_count < OWN_MAX) own[own_count++] = (struct range){(uint64_t)start, (uint64_t)start + bytes};
}

static bool is_in(const void *place, const struct range *range) {
    return range->start <= (uint64_t)place && (uint64_t)place < range->end;
}

static int note_variables(struct dl_phdr_info *info, size_t size_bytes, void *unused) {
    (void)size_bytes, (void)unused;
    size_t thread_local_bytes = 0;
    bool is_own = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_TLS) thread_local_bytes = part->p_memsz;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W) || variables_count == VARIABLES_MAX) continue;
        uint64_t start = info->dlpi_addr + part->p_vaddr;
        struct range *made = &variables[variables_count++];
        *made = (struct range){start, start + part->p_memsz};
        if (!is_in(own, made)) continue;
        is_own = true;
        add_own((const void *)start, part->p_memsz);
    }
    if (is_own && info->dlpi_tls_data) add_own(info->dlpi_tls_data, thread_local_bytes);
    return 0;
}

static void find_variables(void) {
    variables_count = own_count = 0;
    dl_iterate_phdr(note_variables, NULL);
    qsort(variables, variables_count, sizeof *variables, compare_ranges);
}

static void find_own(void) {
    ledger_range(add_own);
    mappings_table(add_own);
    memory_tables(add_own);
    work_store_ranges(add_own);
    rooms_range(add_own);
    hosted_range(add_own);
    memory_words_range(add_own);
    memory_rows_range(add_own);
    qsort(own, own_count, sizeof *own, compare_ranges);
    unsigned kept = 0;
    for (unsigned i = 0; i < own_count; i++) {
        if (kept && own[i].start < own[kept - 1].end) {
            if (own[kept - 1].end < own[i].end) own[kept - 1].end = own[i].end;
        } else {
            own[kept++] = own[i];
        }
    }
    own_count = kept;
}

__attribute__((noinline)) void roots_prepare(void) {
    thread_stacks_note();
    stack = (uint64_t)__builtin_frame_address(0);
    unsigned count = mappings_read();
    for (unsigned i = 0; i < count; i++) {
        const struct mapping *mapping = mapping_at_index(i);
        if (mapping->start <= stack && stack < mapping->end) exit_frames_note(mapping->end);
    }
}

void roots_forget(void) { mappings_forget(); }

// -- what lies in anonymous memory -----------------------------------------------------------------------------------

static uint64_t claimed;  // up to here, of the mapping that is looked at
static uint64_t mapping_end;

// Each of these returns where a piece ends that begins at a page, or 0 where none does; heaps are entered.

static uint64_t claim_pools(uint64_t page) {
    uint64_t end = page, pool_bytes;
    while (end < mapping_end && (pool_bytes = heap_python_pool(end, mapping_end))) end += pool_bytes;
    struct heap *heap = end > page ? heap_add(page, end) : NULL;
    if (!heap) return 0;
    for (uint64_t pool = page; pool < end; pool += heap_python_pool(pool, end)) heap_python_enter(heap, pool);
    return end;
}

static uint64_t claim_mapping(uint64_t page) {
    uint64_t end = heap_malloc_mapping(page, mapping_end);
    if (!end || mapped_count == MAPPED_MAX) return 0;
    mapped[mapped_count++] = (struct range){page, end};
    mapped_bytes += end - page;
    return end;
}

static uint64_t claim_variables(uint64_t page) {
    unsigned low = first_behind(variables, variables_count, page);
    if (low == variables_count || variables[low].start >= page + PAGE_BYTES) return 0;
    uint64_t end = (variables[low].end + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    if (end > mapping_end) end = mapping_end;
    add_held(page, end);
    return end;
}

// The thread's own variables, which lie below its descriptor.
static uint64_t claim_thread_local(uint64_t page) {
    enum { BELOW_BYTES = 1 << 16, ABOVE_BYTES = 1 << 13 };
    uint64_t self = (uint64_t)__builtin_thread_pointer();
    if (page + BELOW_BYTES < self || page > self + ABOVE_BYTES) return 0;
    add_held(page, page + PAGE_BYTES);
    return page + PAGE_BYTES;
}

static uint64_t claim(uint64_t page) {
    uint64_t end = heap_malloc_walk_other(page, mapping_end);
    if (!end) end = claim_pools(page);
    if (!end) end = claim_mapping(page);
    if (!end) end = claim_variables(page);
    return end ? end : claim_thread_local(page);
}

static void sort_out(uint64_t start, uint64_t end) {
    uint64_t unknown = start > claimed ? start : claimed;
    for (uint64_t page = unknown; page < end;) {
        uint64_t piece = claim(page);
        if (!piece) {
            page += PAGE_BYTES;
            continue;
        }
        add(unknown, page, ROOT_MAPPED);
        region_cut(page, piece);
        unknown = page = claimed = piece;
    }
    add(unknown, end, ROOT_MAPPED);
}

static void sort_out_mapping(uint64_t start, uint64_t end) {
    claimed = start;
    mapping_end = end;
    // to ask which of so many pages exist would take seconds
    for (uint64_t first, behind; shadow_within(start, end, &first, &behind); start = behind)
        mappings_touched(start, first, sort_out);
    mappings_touched(start, end, sort_out);
}

// A stack has a page below it that nobody may touch: what lies below the part that is in use is no more than its rest.
static bool sort_out_stack(const struct mapping *mapping, const struct mapping *guard) {
    uint64_t from = mapping->start <= stack && stack < mapping->end ? mapping->end
                                                                    : thread_stack_in(mapping->start, mapping->end);
    if (!from) return false;
    add_held(from, mapping->end);
    if (!guard) sort_out_mapping(mapping->start, from);
    region_cut(guard ? guard->start : from, mapping->end);
    return true;
}

static void sort_out_heap(uint64_t start, uint64_t end) {
    add(heap_malloc_walk_first(start, end), end, ROOT_UNKNOWN);
}

static void sort_out_mappings_of_malloc(void) {
    bool agree = heap_malloc_mappings_agree(mapped_count, mapped_bytes);
    for (unsigned i = 0; i < mapped_count; i++) {
        if (heap_malloc_mapping_is_own(mapped[i].start, mapped[i].end)) continue;
        if (agree)
            heap_add_block(mapped[i].start, mapped[i].end);
        else
            add(mapped[i].start, mapped[i].end, ROOT_UNKNOWN);
    }
}

// Blocks of a sanitizer's heap in which the library keeps such addresses are in use, and hold nothing.
static void set_aside_own(void) {
    struct block_range block;
    for (unsigned i = 0; i < own_count; i++) block_reach(own[i].start, &block);
}

void roots_find(void) {
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    bool is_whole = mappings_are_there();
    unsigned count = mappings_read();
    roots = mmap(NULL, ROOTS_MAX * sizeof *roots, PROT_READ | PROT_WRITE, how, -1, 0);
    if (!is_whole || !count || roots == MAP_FAILED) give_up();
    find_variables();
    find_own();
    exit_frames_each(add_held);
    host_thread_data(add_data);
    work_store_data(add_data);
    for (unsigned i = 0; i < count; i++) {
        const struct mapping *mapping = mapping_at_index(i), *before = i ? mapping_at_index(i - 1) : NULL;
        if (memory_covers(mapping->start)) continue;
        bool is_guarded = before && before->end == mapping->start && before->kind == MAPPING_GUARD;
        const struct mapping *guard = is_guarded ? before : NULL;
        if (mapping->kind == MAPPING_ANONYMOUS || mapping->kind == MAPPING_GUARD)
            region_add(mapping->start, mapping->end);
        switch (mapping->kind) {
            case MAPPING_FILE: add_held(mapping->start, mapping->end); break;
            case MAPPING_READ_ONLY: mappings_written(mapping->start, mapping->end, add_held); break;
            case MAPPING_SHARED: mappings_resident(mapping->start, mapping->end, add_shared); break;
            case MAPPING_HEAP: sort_out_heap(mapping->start, mapping->end); break;
            case MAPPING_STACK:
                if (!sort_out_stack(mapping, mapping)) add_held(mapping->start, mapping->end);
                break;
            case MAPPING_ANONYMOUS:
                if (!sort_out_stack(mapping, guard)) sort_out_mapping(mapping->start, mapping->end);
                break;
            default: break;
        }
    }
    sort_out_mappings_of_malloc();
    set_aside_own();
}

void roots_each(enum root root, void (*see)(uint64_t start, uint64_t end)) {
    for (unsigned i = 0; i < roots_count; i++)
        if (roots[i].root == root) see(roots[i].range.start, roots[i].range.end);
}
