#include "kernels/shared_atomics.h"

#include <stddef.h>

bool shared_atomics_are_known(void) { return shared_words->changed == shared_words->moment; }

static uint32_t bytes_in(uint64_t word, uint64_t offset, unsigned bytes) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < WORD_BYTES; i++)
        if (word * WORD_BYTES + i - offset < bytes) bits |= 1u << i;
    return bits;
}

void shared_atomics_note(uint64_t offset, unsigned bytes, uint32_t thread, uint32_t site) {
    shared_words->changed = shared_words->moment;
    for (uint64_t word = offset / WORD_BYTES; word * WORD_BYTES < offset + bytes; word++) {
        struct change *changes = shared_words->changes[word];
        bool is_others = is_by_other_now(changes[0].touch.when, thread);
        struct last_touch touch = touch_of(CLOCK_OF_WRITES, thread, site);
        changes[is_others] = (struct change){touch, bytes_in(word, offset, bytes)};
    }
}

const struct last_touch *shared_atomics_meet(uint64_t offset, unsigned bytes, uint32_t thread) {
    if (!shared_atomics_are_known()) return NULL;
    for (uint64_t word = offset / WORD_BYTES; word * WORD_BYTES < offset + bytes; word++)
        for (unsigned which = 0; which < CHANGES_OF_WORD; which++) {
            const struct change *change = &shared_words->changes[word][which];
            bool meets = change->bytes & bytes_in(word, offset, bytes);
            if (meets && is_unordered_touch(&change->touch, CLOCK_OF_WRITES, thread)) return &change->touch;
        }
    return NULL;
}
