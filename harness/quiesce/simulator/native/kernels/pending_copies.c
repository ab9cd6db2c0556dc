#include "kernels/pending_copies.h"

#include <stddef.h>
#include <string.h>

#include "kernels/abi.h"

enum { WORD_BYTES = 4, COPIES_MAX = 1 << 15 };

static struct entry {
    struct pending_copy copy;
    uint32_t group;
    uint16_t next;  // of the thread, or of those that are free; 0: none
} entries[COPIES_MAX];
static uint16_t covering[SHARED_BYTES_MAX / WORD_BYTES];  // for each word, the last copy that writes it
static struct queue {
    uint16_t first, last;
    uint32_t committed;  // groups
} queues[BLOCK_THREADS_MAX];
static uint32_t used, pending;  // entries, the first of which is none
static uint16_t is_free;

void pending_copies_drop(void) {
    if (!pending && !used) return;
    if (pending) memset(covering, 0, sizeof covering);
    if (used) memset(queues, 0, sizeof queues);
    used = pending = 0;
    is_free = 0;
}

static uint16_t take_entry(void) {
    uint16_t taken = is_free;
    if (taken)
        is_free = entries[taken].next;
    else if (used + 1 < COPIES_MAX)
        taken = (uint16_t)++used;
    return taken;
}

bool pending_copies_add(const struct pending_copy *copy) {
    uint16_t number = take_entry();
    if (!number) return false;
    struct queue *queue = &queues[copy->thread % BLOCK_THREADS_MAX];
    entries[number] = (struct entry){.copy = *copy, .group = queue->committed};
    if (queue->first)
        entries[queue->last].next = number;
    else
        queue->first = number;
    queue->last = number;
    for (uint32_t word = copy->offset / WORD_BYTES; word < (copy->offset + copy->bytes) / WORD_BYTES; word++)
        covering[word] = number;
    pending++;
    return true;
}

bool pending_copies_wait(void) { return pending; }

void pending_copies_commit(uint32_t thread) { queues[thread % BLOCK_THREADS_MAX].committed++; }

bool pending_copies_take(uint32_t thread, uint32_t groups_left, struct pending_copy *taken) {
    struct queue *queue = &queues[thread % BLOCK_THREADS_MAX];
    uint16_t number = queue->first;
    if (!number || (uint64_t)entries[number].group + groups_left >= queue->committed) return false;
    struct entry *entry = &entries[number];
    *taken = entry->copy;
    for (uint32_t word = taken->offset / WORD_BYTES; word < (taken->offset + taken->bytes) / WORD_BYTES; word++)
        if (covering[word] == number) covering[word] = 0;
    queue->first = entry->next;
    entry->next = is_free;
    is_free = number;
    pending--;
    return true;
}

const struct pending_copy *pending_copies_find(uint64_t offset, uint64_t bytes) {
    if (!pending) return NULL;
    for (uint64_t word = offset / WORD_BYTES; word <= (offset + bytes - 1) / WORD_BYTES; word++)
        if (covering[word]) return &entries[covering[word]].copy;
    return NULL;
}
