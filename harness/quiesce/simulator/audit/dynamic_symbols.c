#include "dynamic_symbols.h"

#include "memory.h"
#include "object.h"
#include "system.h"

enum { PAGE_BYTES = 4096 };

int dynamic_symbols_open(dynamic_symbols *of, const struct link_map *map) {
    *of = (dynamic_symbols){.base = map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        ElfW(Addr) address = entry->d_un.d_ptr;
        if (address < map->l_addr) address += map->l_addr;  // the loader leaves a table that it can't write
        switch (entry->d_tag) {
            case DT_SYMTAB: of->symbols = (const Elf64_Sym *)address; break;
            case DT_STRTAB: of->names = (const char *)address; break;
            case DT_STRSZ: of->names_bytes = entry->d_un.d_val; break;
            case DT_GNU_HASH: of->gnu_hash = (const uint32_t *)address; break;
            case DT_HASH: of->sysv_hash = (const uint32_t *)address; break;
            default: break;
        }
    }
    return of->symbols && of->names && (of->gnu_hash || of->sysv_hash);
}

static int is_defined_as(const dynamic_symbols *of, uint32_t number, const char *name) {
    const Elf64_Sym *symbol = &of->symbols[number];
    return symbol->st_shndx != SHN_UNDEF && is_same(of->names + symbol->st_name, name);
}

// https://flapenguin.me/elf-dt-gnu-hash: buckets, the first symbol that is in one, words of a filter that is not used.
static const Elf64_Sym *find_by_gnu_hash(const dynamic_symbols *of, const char *name) {
    uint32_t buckets = of->gnu_hash[0], first = of->gnu_hash[1];
    const uint32_t *bucket = of->gnu_hash + 4 + 2 * of->gnu_hash[2], *chain = bucket + buckets;
    uint32_t hash = 5381;
    for (const unsigned char *each = (const unsigned char *)name; *each; each++) hash = hash * 33 + *each;
    uint32_t number = buckets ? bucket[hash % buckets] : 0;
    if (number < first) return NULL;
    for (;; number++) {
        uint32_t other = chain[number - first];
        if ((other | 1) == (hash | 1) && is_defined_as(of, number, name)) return &of->symbols[number];
        if (other & 1) return NULL;  // the last of its bucket
    }
}

static const Elf64_Sym *find_by_sysv_hash(const dynamic_symbols *of, const char *name) {
    uint32_t buckets = of->sysv_hash[0], hash = 0;
    const uint32_t *bucket = of->sysv_hash + 2, *chain = bucket + buckets;
    for (const unsigned char *each = (const unsigned char *)name; *each; each++) {
        hash = (hash << 4) + *each;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    for (uint32_t number = buckets ? bucket[hash % buckets] : 0; number; number = chain[number])
        if (is_defined_as(of, number, name)) return &of->symbols[number];
    return NULL;
}

static const Elf64_Sym *find(const dynamic_symbols *of, const char *name) {
    return of->gnu_hash ? find_by_gnu_hash(of, name) : find_by_sysv_hash(of, name);
}

ElfW(Addr) dynamic_symbols_find(const dynamic_symbols *of, const char *name) {
    const Elf64_Sym *found = find(of, name);
    return found ? of->base + found->st_value : 0;
}

static int is_only_read(const struct link_map *map, const void *table) {
    object in;
    if (!object_describe(&in, map, map->l_name)) return 0;
    for (int each = 0; each < in.segment_count; each++) {
        const Elf64_Phdr *segment = &in.segments[each];
        int has_it = (ElfW(Addr))table - in.base - segment->p_vaddr < segment->p_filesz;
        if (segment->p_type == PT_LOAD && has_it) return segment->p_flags == PF_R;
    }
    return 0;
}

static int protect(const dynamic_symbols *of, int protection) {
    char *first = (char *)((ElfW(Addr))of->symbols & -(ElfW(Addr))PAGE_BYTES);
    size_t size_bytes = (size_t)(of->names - first + PAGE_BYTES - 1) & -(size_t)PAGE_BYTES;
    return memory_protect(first, size_bytes, protection);
}

int dynamic_symbols_unlock(dynamic_symbols *of, struct link_map *c_library) {
    if (!dynamic_symbols_open(of, c_library) || !is_only_read(c_library, of->symbols)) return 0;
    if ((const char *)of->symbols > of->names) return 0;  // the names follow, and say where the table ends
    return protect(of, PROT_READ | PROT_WRITE);
}

void dynamic_symbols_lock(const dynamic_symbols *of) { protect(of, PROT_READ); }

ElfW(Addr) dynamic_symbols_replace(const dynamic_symbols *of, const char *name, ElfW(Addr) address) {
    Elf64_Sym *found = (Elf64_Sym *)find(of, name);
    if (!found || ELF64_ST_TYPE(found->st_info) != STT_FUNC) return 0;
    ElfW(Addr) original = of->base + found->st_value;
    found->st_value = address - of->base;
    return original;
}

// What an object takes from others stands before all that can be found in it; but a program that says itself where it
// lies may be where others find a function that it takes. Where nothing can be found, the table for that does not say
// how much there is before; the names mostly follow the symbols then.
static size_t count_symbols(const dynamic_symbols *of) {
    if (!of->gnu_hash) return of->sysv_hash[1];
    uint32_t buckets = of->gnu_hash[0], first = of->gnu_hash[1], last = 0;
    const uint32_t *bucket = of->gnu_hash + 4 + 2 * of->gnu_hash[2], *chain = bucket + buckets;
    for (uint32_t each = 0; each < buckets; each++)
        if (bucket[each] > last) last = bucket[each];
    if (last < first) {
        ElfW(Addr) from = (ElfW(Addr))of->symbols, to = (ElfW(Addr))of->names;
        return to > from ? (to - from) / sizeof *of->symbols : first;
    }
    if (of->base) return first;
    while (!(chain[last - first] & 1)) last++;
    return last + 1;
}

int dynamic_symbols_needed(const dynamic_symbols *of, const char *const *names) {
    size_t count = count_symbols(of);
    int found = 0;
    for (size_t each = 1; each < count; each++) {
        uint32_t place = of->symbols[each].st_name;
        if (of->symbols[each].st_shndx != SHN_UNDEF || place >= of->names_bytes) continue;
        for (const char *const *name = names; *name; name++) found += is_same(of->names + place, *name);
    }
    return found;
}
