#include "image.h"

#include "system.h"

static int read_whole(int file, void *place, size_t size_bytes, long offset) {
    return read_at(file, place, size_bytes, offset) == (long)size_bytes;
}

static int read_headers(image *from) {
    Elf64_Ehdr *header = &from->header;
    if (!read_whole(from->file, header, sizeof *header, 0) || !begins_with((char *)header->e_ident, ELFMAG)) return 0;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr)) return 0;
    if (header->e_phnum > SEGMENTS_MAX) return 0;
    return read_whole(from->file, from->segments, header->e_phnum * sizeof(Elf64_Phdr), (long)header->e_phoff);
}

int image_open(image *from, const char *path) {
    from->file = open_file(path, O_RDONLY);
    if (from->file < 0) return 0;
    if (read_headers(from)) return 1;
    close_file(from->file);
    return 0;
}

void image_close(image *from) { close_file(from->file); }

// Return where in the file stands what is loaded at an address, or -1.
static long offset_of(const image *from, Elf64_Addr address) {
    for (int each = 0; each < from->header.e_phnum; each++) {
        const Elf64_Phdr *segment = &from->segments[each];
        if (segment->p_type == PT_LOAD && address - segment->p_vaddr < segment->p_filesz)
            return (long)(segment->p_offset + address - segment->p_vaddr);
    }
    return -1;
}

int image_soname(const image *from, char soname[SONAME_BYTES]) {
    enum { ENTRIES = 64 };
    Elf64_Dyn entries[ENTRIES];
    Elf64_Addr names = 0;
    long name = -1;
    for (int each = 0; each < from->header.e_phnum; each++) {
        const Elf64_Phdr *segment = &from->segments[each];
        if (segment->p_type != PT_DYNAMIC) continue;
        size_t wanted = segment->p_filesz < sizeof entries ? segment->p_filesz : sizeof entries;
        long found = read_at(from->file, entries, wanted, (long)segment->p_offset) / (long)sizeof *entries;
        for (long entry = 0; entry < found && entries[entry].d_tag != DT_NULL; entry++) {
            if (entries[entry].d_tag == DT_SONAME) name = (long)entries[entry].d_un.d_val;
            if (entries[entry].d_tag == DT_STRTAB) names = entries[entry].d_un.d_ptr;
        }
    }
    long offset = offset_of(from, names);
    if (name < 0 || offset < 0) return 0;
    long size_bytes = read_at(from->file, soname, SONAME_BYTES - 1, offset + name);
    soname[size_bytes > 0 ? size_bytes : 0] = 0;
    return size_bytes > 0;
}
