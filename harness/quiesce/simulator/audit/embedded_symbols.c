#include "embedded_symbols.h"

/* In shared objects the functions are local ones, in executables global ones that are hidden. A client's own functions
   may have such names, too (cudaCheckErrors); so only those count that lie between two marks of the archive: the first
   of its functions, and the last one that NVIDIA's build has given a name of its own to. */

typedef struct {
    const Elf64_Sym *symbols;
    size_t count;
    const char *names;
    size_t names_bytes;
} symbol_table;

int mapped_file_open(mapped_file *file, const char *path) {
    *file = (mapped_file){NULL, 0};
    int opened = open_file(path, O_RDONLY);
    if (opened < 0) return 0;
    long size_bytes = call_system(SYS_lseek, opened, 0, SEEK_END, 0);
    if (size_bytes > 0) {
        file->content = memory_map_file(opened, (size_t)size_bytes);
        file->size_bytes = (size_t)size_bytes;
    }
    close_file(opened);
    return file->content != NULL;
}

void mapped_file_close(mapped_file *file) {
    memory_unmap((void *)file->content, file->size_bytes);
    file->content = NULL;
}

static const void *bytes_at(const mapped_file *file, size_t offset, size_t size_bytes) {
    if (offset > file->size_bytes || file->size_bytes - offset < size_bytes) return NULL;
    return file->content + offset;
}

static int find_table(const mapped_file *file, symbol_table *found) {
    const Elf64_Ehdr *header = bytes_at(file, 0, sizeof *header);
    if (!header || header->e_shentsize != sizeof(Elf64_Shdr)) return 0;
    const Elf64_Shdr *sections = bytes_at(file, header->e_shoff, header->e_shnum * sizeof *sections);
    for (int each = 0; sections && each < header->e_shnum; each++) {
        const Elf64_Shdr *symbols = &sections[each];
        if (symbols->sh_type != SHT_SYMTAB || symbols->sh_link >= header->e_shnum) continue;
        const Elf64_Shdr *names = &sections[symbols->sh_link];
        found->symbols = bytes_at(file, symbols->sh_offset, symbols->sh_size);
        found->count = symbols->sh_size / sizeof(Elf64_Sym);
        found->names = bytes_at(file, names->sh_offset, names->sh_size);
        found->names_bytes = names->sh_size;
        return found->symbols && found->names && found->names_bytes && !found->names[found->names_bytes - 1];
    }
    return 0;
}

static const char *function_name(const symbol_table *table, const Elf64_Sym *symbol) {
    int is_function = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
    return is_function && symbol->st_name < table->names_bytes ? table->names + symbol->st_name : NULL;
}

static int is_inside(const Elf64_Sym *symbol) {
    return ELF64_ST_BIND(symbol->st_info) == STB_LOCAL || ELF64_ST_VISIBILITY(symbol->st_other) == STV_HIDDEN;
}

// libcudart_static_<40 digits> since 12.5, __cudart<number> before.
static int is_mark(const char *name) {
    if (begins_with(name, "libcudart_static_")) return 1;
    return begins_with(name, "__cudart") && name[8] >= '0' && name[8] <= '9';
}

int embedded_by_symbols(const mapped_file *file, embedded_functions *found) {
    symbol_table table;
    found->count = 0;
    if (!find_table(file, &table)) return 0;
    ElfW(Addr) low = 0, high = 0;
    for (size_t each = 1; each < table.count; each++) {
        const Elf64_Sym *symbol = &table.symbols[each];
        const char *name = function_name(&table, symbol);
        if (!name) continue;
        if (is_mark(name) && symbol->st_value >= high) high = symbol->st_value;
        if (is_same(name, "cudaGetExportTable") && is_inside(symbol)) low = symbol->st_value;
    }
    for (size_t each = 1; low && each < table.count; each++) {
        const Elf64_Sym *symbol = &table.symbols[each];
        const char *name = function_name(&table, symbol);
        if (!name || symbol->st_value < low || symbol->st_value >= high) continue;
        if (!is_inside(symbol) || !embedded_is_public(name)) continue;
        if (found->count == FUNCTIONS_MAX) return 0;
        found->functions[found->count++] = (embedded_function){symbol->st_value, name};
    }
    return found->count > 0;
}
