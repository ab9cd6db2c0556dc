#include "served.h"

#include <elf.h>

#include "run.h"
#include "system.h"

/* A line of the table: "libcudart 12 libcudart.so.12"; "*" is any number, "-" is nobody. The first that fits counts. */
typedef struct {
    const char *beginning, *number, *stands_in;
} row;

enum { ROWS_MAX = 32, TABLE_BYTES = 4096, SEGMENTS_MAX = 64, SONAME_BYTES = 256 };

static char table[TABLE_BYTES];
static row rows[ROWS_MAX];
static int count;

void served_read(void) {
    char path[PATH_BYTES] = "";
    if (!append(path, sizeof path, run_folder()) || !append(path, sizeof path, "/served")) return;
    int file = open_file(path, O_RDONLY);
    if (file < 0) return;
    long size_bytes = read_at(file, table, sizeof table - 1, 0);
    close_file(file);
    const char *words[3] = {table};
    int word = 0;
    for (long at = 0; at < size_bytes && count < ROWS_MAX; at++) {
        char ended = table[at];
        if (ended != ' ' && ended != '\n') continue;
        table[at] = 0;
        if (ended == '\n' && word == 2) rows[count++] = (row){words[0], words[1], words[2]};
        word = ended == '\n' ? 0 : word + 1;
        if (word < 3) words[word] = &table[at + 1];
    }
}

static int is_digit(char character) { return character >= '0' && character <= '9'; }

static int is_hexadecimal(char character) {
    return is_digit(character) || (character >= 'a' && character <= 'f');
}

/* Return what stands behind a library's name, as ".so.12.4", or NULL where it is another's. Tools that bundle libraries
   put a part of a hash there: libcudart-5a077122.so.12.4.127. */
static const char *ending_of(const char *name, const char *beginning) {
    if (!begins_with(name, beginning)) return NULL;
    name += length_of(beginning);
    if (*name == '-') {
        const char *hash = ++name;
        while (is_hexadecimal(*name)) name++;
        if (name - hash < 6) return NULL;
    }
    if (!begins_with(name, ".so") || (name[3] && name[3] != '.')) return NULL;
    for (const char *each = name + 3; *each; each++)
        if (*each != '.' && !is_digit(*each)) return NULL;
    return name;
}

/* Say whether an ending has the number; one without any may be anything. */
static int has_number(const char *ending, const char *number) {
    if (is_same(number, "*") || !ending[3] || !ending[4]) return 1;
    if (!begins_with(ending + 4, number)) return 0;
    return !is_digit(ending[4 + length_of(number)]);
}

service served_as(const char *name, const char **stands_in) {
    const char *base = base_name(name);
    for (int each = 0; each < count; each++) {
        const char *ending = ending_of(base, rows[each].beginning);
        if (ending && has_number(ending, rows[each].number)) {
            *stands_in = rows[each].stands_in;
            return is_same(*stands_in, "-") ? NOT_SERVED : SERVED;
        }
    }
    return NO_RUNTIME;
}

typedef struct {
    int file;
    Elf64_Ehdr header;
    Elf64_Phdr segments[SEGMENTS_MAX];
} image;

static int read_whole(int file, void *place, size_t size_bytes, long offset) {
    return read_at(file, place, size_bytes, offset) == (long)size_bytes;
}

static int read_image(image *from) {
    Elf64_Ehdr *header = &from->header;
    if (!read_whole(from->file, header, sizeof *header, 0) || !begins_with((char *)header->e_ident, ELFMAG)) return 0;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr)) return 0;
    if (header->e_phnum > SEGMENTS_MAX) return 0;
    return read_whole(from->file, from->segments, header->e_phnum * sizeof(Elf64_Phdr), (long)header->e_phoff);
}

/* Return where in the file stands what is loaded at an address, or -1. */
static long offset_of(const image *from, Elf64_Addr address) {
    for (int each = 0; each < from->header.e_phnum; each++) {
        const Elf64_Phdr *segment = &from->segments[each];
        if (segment->p_type == PT_LOAD && address - segment->p_vaddr < segment->p_filesz)
            return (long)(segment->p_offset + address - segment->p_vaddr);
    }
    return -1;
}

/* Read the SONAME in a file; 0 where it has none. */
static int read_soname(const image *from, char soname[SONAME_BYTES]) {
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

service served_by_content(const char *path, const char **stands_in) {
    image from;
    char soname[SONAME_BYTES];
    from.file = open_file(path, O_RDONLY);
    if (from.file < 0) return NO_RUNTIME;
    int found = read_image(&from) && read_soname(&from, soname);
    close_file(from.file);
    return found ? served_as(soname, stands_in) : NO_RUNTIME;
}
