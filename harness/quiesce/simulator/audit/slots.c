#include "slots.h"

#include <stddef.h>

/* Runtimes of 11.8 to 12.2 read the address of a function's name from memory. Nothing is relocated yet: so the address
   is taken from the relocation (RELA), or from the place itself, without the object's own (RELR). In a program that
   says itself where it lies, there is no relocation, and the place holds the address. */

enum { BITS = 63 };

typedef struct {
    ElfW(Addr) rela, relr;
    size_t rela_bytes, relr_bytes;
} relocations;

static int enter(texts *into, ElfW(Addr) place, ElfW(Addr) address) {
    const char *name = texts_find(into, address);
    return !name || texts_add(into, place, name);
}

static int enter_word(texts *into, const object *of, ElfW(Addr) place) {
    const ElfW(Addr) *word = object_at(of, place, sizeof *word);
    return !word || enter(into, place, *word);
}

static relocations relocations_of(const object *of) {
    relocations found = {0, 0, 0, 0};
    for (const ElfW(Dyn) *entry = of->map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        ElfW(Addr) address = entry->d_un.d_ptr;
        if (address < of->base) address += of->base;
        switch (entry->d_tag) {
            case DT_RELA: found.rela = address - of->base; break;
            case DT_RELASZ: found.rela_bytes = entry->d_un.d_val; break;
            case 36 /* DT_RELR */: found.relr = address - of->base; break;
            case 35 /* DT_RELRSZ */: found.relr_bytes = entry->d_un.d_val; break;
            default: break;
        }
    }
    return found;
}

static int collect_rela(texts *into, const object *of, const relocations *by) {
    const Elf64_Rela *each = object_at(of, by->rela, by->rela_bytes);
    for (size_t count = each ? by->rela_bytes / sizeof *each : 0; count--; each++)
        if (ELF64_R_TYPE(each->r_info) == R_X86_64_RELATIVE && !enter(into, each->r_offset, (ElfW(Addr))each->r_addend))
            return 0;
    return 1;
}

// An even word is a place; an odd one has a bit for each of the 63 places after the last.
static int collect_relr(texts *into, const object *of, const relocations *by) {
    const ElfW(Addr) *each = object_at(of, by->relr, by->relr_bytes);
    ElfW(Addr) place = 0;
    for (size_t count = each ? by->relr_bytes / sizeof *each : 0; count--; each++) {
        if (!(*each & 1)) {
            if (!enter_word(into, of, *each)) return 0;
            place = *each + sizeof *each;
            continue;
        }
        for (unsigned bit = 0; bit < BITS; bit++)
            if (*each >> (bit + 1) & 1 && !enter_word(into, of, place + bit * sizeof *each)) return 0;
        place += BITS * sizeof *each;
    }
    return 1;
}

static int collect_words(texts *into, const object *of) {
    for (int each = 0; each < of->segment_count; each++) {
        const Elf64_Phdr *segment = &of->segments[each];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W)) continue;
        ElfW(Addr) place = (segment->p_vaddr + 7) & -8UL, end = segment->p_vaddr + segment->p_filesz;
        for (; place + sizeof place <= end; place += sizeof place)
            if (!enter_word(into, of, place)) return 0;
    }
    return 1;
}

int slots_collect(texts *into, const object *of) {
    if (of->is_fixed) return collect_words(into, of);
    relocations by = relocations_of(of);
    return collect_rela(into, of, &by) && collect_relr(into, of, &by);
}
