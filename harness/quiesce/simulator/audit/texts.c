#include "texts.h"

#include <emmintrin.h>
#include <stddef.h>

#include "embedded.h"
#include "system.h"

enum { NAME_BYTES_MAX = 96, STEP = sizeof(__m128i) };

static const text *slot_of(const texts *in, ElfW(Addr) place) {
    uint32_t at = (uint32_t)(place * 0x9e3779b97f4a7c15UL >> 49) % TEXTS_SLOTS;
    while (in->slots[at].name && in->slots[at].place != place) at = (at + 1) % TEXTS_SLOTS;
    return &in->slots[at];
}

int texts_add(texts *into, ElfW(Addr) place, const char *name) {
    text *slot = (text *)slot_of(into, place);
    if (slot->name) return 1;
    if (into->count == TEXTS_MAX) return 0;
    *slot = (text){place, name};
    if (!into->count++ || place < into->least) into->least = place;
    if (place > into->most) into->most = place;
    return 1;
}

const char *texts_find(const texts *in, ElfW(Addr) place) {
    return place < in->least || place > in->most ? NULL : slot_of(in, place)->name;
}

// Say whether a text is a public function's name that ends before `end`.
static int is_name(const char *name, const char *end) {
    if (end > name + NAME_BYTES_MAX) end = name + NAME_BYTES_MAX;
    const char *each = name;
    for (; each < end && *each; each++) {
        char lower = *each | 0x20;
        if (!(lower >= 'a' && lower <= 'z') && !(*each >= '0' && *each <= '9') && *each != '_') return 0;
    }
    return each < end && embedded_is_public(name);
}

static int take(texts *into, const object *of, const char *name, const char *end) {
    return !is_name(name, end) || texts_add(into, (ElfW(Addr))name - of->base, name);
}

// Look for "cuda": 16 places at once, by its first two letters.
static int collect_between(texts *into, const object *of, const char *each, const char *end) {
    const __m128i first = _mm_set1_epi8('c'), second = _mm_set1_epi8('u');
    for (; each + STEP + NAME_BYTES_MAX < end; each += STEP) {
        __m128i here = _mm_loadu_si128((const __m128i *)each), next = _mm_loadu_si128((const __m128i *)(each + 1));
        unsigned found =
            (unsigned)_mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(here, first), _mm_cmpeq_epi8(next, second)));
        for (; found; found &= found - 1) {
            const char *name = each + __builtin_ctz(found);
            if (name[2] == 'd' && name[3] == 'a' && !take(into, of, name, end)) return 0;
        }
    }
    for (; each + 5 < end; each++)
        if (begins_with(each, "cuda") && !take(into, of, each, end)) return 0;
    return 1;
}

int texts_collect(texts *into, const object *of) {
    for (int each = 0; each < of->segment_count; each++) {
        const Elf64_Phdr *segment = &of->segments[each];
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W || !(segment->p_flags & PF_R)) continue;
        const char *begin = (const char *)(of->base + segment->p_vaddr);
        if (!collect_between(into, of, begin, begin + segment->p_filesz)) return -1;
    }
    return into->count;
}
