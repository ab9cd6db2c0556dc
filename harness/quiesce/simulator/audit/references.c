#include "references.h"

#include <emmintrin.h>

#include "system.h"

/* Code refers to what is near by its distance from the next instruction: the byte before the distance has the bits
   00…101, and before that stands what is done with the address or with the memory there. */

enum { STEP = sizeof(__m128i), FORM_BITS = 0xc7, BY_DISTANCE = 0x05, DISTANCE_BYTES = 4 };

// lea; mov; and the moves of two addresses at once by which compilers fill structures.
static int is_operation(unsigned char byte) {
    switch (byte) {
        case 0x8d:
        case 0x8b:
        case 0x10:
        case 0x12:
        case 0x14:
        case 0x16:
        case 0x28:
        case 0x6c:
        case 0x6f:
        case 0x7e:
        case 0xd6: return 1;
        default: return 0;
    }
}

static int enter(references *into, const frames *in, ElfW(Addr) code, const char *name) {
    int function = frames_find(in, code);
    if (function < 0) return 1;
    for (int each = into->count; each-- > 0 && into->all[each].function == function;)
        if (is_same(into->all[each].name, name)) return 1;
    if (into->count == REFERENCES_MAX) return 0;
    into->all[into->count++] = (reference){function, name};
    return 1;
}

static int look_at(references *into, const frames *in, const texts *to, const unsigned char *form) {
    if ((*form & FORM_BITS) != BY_DISTANCE || !is_operation(form[-1])) return 1;
    int32_t distance;
    __builtin_memcpy(&distance, form + 1, sizeof distance);
    ElfW(Addr) code = (ElfW(Addr))form - in->of->base;
    const char *name = texts_find(to, code + 1 + DISTANCE_BYTES + (ElfW(Addr))(int64_t)distance);
    return !name || enter(into, in, code, name);
}

static int collect_between(references *into, const frames *in, const texts *to, const unsigned char *each,
                           const unsigned char *end) {
    const __m128i bits = _mm_set1_epi8((char)FORM_BITS), wanted = _mm_set1_epi8(BY_DISTANCE);
    for (; each + STEP + DISTANCE_BYTES < end; each += STEP) {
        __m128i forms = _mm_and_si128(_mm_loadu_si128((const __m128i *)each), bits);
        for (unsigned found = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(forms, wanted)); found; found &= found - 1)
            if (!look_at(into, in, to, each + __builtin_ctz(found))) return 0;
    }
    for (; each + DISTANCE_BYTES < end; each++)
        if (!look_at(into, in, to, each)) return 0;
    return 1;
}

int references_collect(references *into, const frames *in, const texts *to) {
    for (int each = 0; each < in->of->segment_count; each++) {
        const Elf64_Phdr *segment = &in->of->segments[each];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || !(segment->p_flags & PF_R)) continue;
        const unsigned char *begin = (const unsigned char *)(in->of->base + segment->p_vaddr);
        if (segment->p_filesz && !collect_between(into, in, to, begin + 1, begin + segment->p_filesz)) return 0;
    }
    return 1;
}
