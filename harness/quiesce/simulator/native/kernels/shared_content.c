#include "kernels/shared_content.h"

#include <string.h>

enum { WORD_BYTES = 4 };

// No small number, no address, no number that counts, and another one for each word.
static uint32_t word_at(uint64_t number) {
    uint32_t word = (uint32_t)(number + 1) * 0x9e3779b1u;
    return (word ^ word >> 15) * 0x85ebca77u | 0x80808080u;
}

void shared_content_begin(char *memory, size_t bytes) {
    for (size_t at = 0; at + WORD_BYTES <= bytes; at += WORD_BYTES) {
        uint32_t word = word_at(at / WORD_BYTES);
        memcpy(memory + at, &word, sizeof word);
    }
}

bool shared_content_is_new(const char *memory, uint64_t offset, uint64_t bytes) {
    for (uint64_t word = offset / WORD_BYTES; word <= (offset + bytes - 1) / WORD_BYTES; word++) {
        uint32_t held;
        memcpy(&held, memory + word * WORD_BYTES, sizeof held);
        if (held != word_at(word)) return false;
    }
    return true;
}
