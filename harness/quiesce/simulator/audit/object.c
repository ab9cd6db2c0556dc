#include "object.h"

#include <stddef.h>

int object_describe(object *of, const struct link_map *map, const char *path) {
    image from;
    if (!image_open(&from, path)) return 0;
    image_close(&from);
    of->map = map;
    of->base = map->l_addr;
    of->is_fixed = from.header.e_type == ET_EXEC;
    of->segment_count = from.header.e_phnum;
    int is_it = 0;
    for (int each = 0; each < of->segment_count; each++) {
        of->segments[each] = from.segments[each];
        if (from.segments[each].p_type == PT_DYNAMIC)
            is_it = from.segments[each].p_vaddr + of->base == (ElfW(Addr))map->l_ld;
    }
    return is_it && from.header.e_machine == EM_X86_64;
}

const void *object_at(const object *of, ElfW(Addr) address, size_t size_bytes) {
    for (int each = 0; each < of->segment_count; each++) {
        const Elf64_Phdr *segment = &of->segments[each];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_R)) continue;
        ElfW(Addr) offset = address - segment->p_vaddr;
        if (offset < segment->p_filesz && segment->p_filesz - offset >= size_bytes)
            return (const void *)(of->base + address);
    }
    return NULL;
}
