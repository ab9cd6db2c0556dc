// Objects are ELF files for x86-64 (System V ABI, "Relocation Types"), position-independent and small: everything in
// one of them lies within 2 GiB. A call to a function of the runtime goes through a jump in the object's memory.
#include "kernels/object.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/functions.h"
#include "machine/mappings.h"

enum { SECTIONS_MAX = 4096, SYMBOLS_MAX = 1 << 20, OBJECT_BYTES_MAX = 1 << 30 };
enum { JUMP_BYTES = 16 };  // an indirect jump over 8 bytes of address

struct loading {
    const char *content;
    size_t bytes;
    const Elf64_Shdr *sections;
    unsigned sections_count;
    const Elf64_Sym *symbols;
    unsigned symbols_count;
    const char *names;
    size_t names_bytes;
    char *memory;
    size_t code_bytes, used, size;  // code comes first, then data; `used` grows as sections are placed
    uint64_t places[SECTIONS_MAX];  // 0: it is not in memory
    char *jumps, *slots;            // one for each symbol that stands elsewhere, made when it is met
    char *reason;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct loading *loading, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(loading->reason, OBJECT_REASON_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

static size_t align(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static bool lies_within(const struct loading *loading, uint64_t start, uint64_t bytes) {
    return start <= loading->bytes && bytes <= loading->bytes - start;
}

// -- tables ----------------------------------------------------------------------------------------------------------

static bool read_symbols(struct loading *loading, const Elf64_Shdr *section) {
    if (section->sh_link >= loading->sections_count || section->sh_entsize != sizeof(Elf64_Sym) ||
        section->sh_offset % 8)
        return refuse(loading, "its table of symbols is damaged");
    const Elf64_Shdr *names = &loading->sections[section->sh_link];
    if (!lies_within(loading, section->sh_offset, section->sh_size) ||
        !lies_within(loading, names->sh_offset, names->sh_size) || !names->sh_size ||
        section->sh_size / sizeof(Elf64_Sym) > SYMBOLS_MAX || loading->content[names->sh_offset + names->sh_size - 1])
        return refuse(loading, "its table of symbols is damaged");
    loading->symbols = (const Elf64_Sym *)(loading->content + section->sh_offset);
    loading->symbols_count = (unsigned)(section->sh_size / sizeof(Elf64_Sym));
    loading->names = loading->content + names->sh_offset;
    loading->names_bytes = names->sh_size;
    return true;
}

static bool read_header(struct loading *loading) {
    Elf64_Ehdr header;
    if (loading->bytes < sizeof header || (uint64_t)loading->content % 8) return refuse(loading, "it is cut off");
    memcpy(&header, loading->content, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_type != ET_REL || header.e_machine != EM_X86_64)
        return refuse(loading, "it is no object for this processor");
    loading->sections_count = header.e_shnum;
    if (header.e_shnum > SECTIONS_MAX || header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff % 8 ||
        !lies_within(loading, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr)))
        return refuse(loading, "its table of sections is damaged");
    loading->sections = (const Elf64_Shdr *)(loading->content + header.e_shoff);
    for (unsigned i = 0; i < loading->sections_count; i++) {
        const Elf64_Shdr *section = &loading->sections[i];
        if (section->sh_type != SHT_NOBITS && !lies_within(loading, section->sh_offset, section->sh_size))
            return refuse(loading, "a section is cut off");
        if (section->sh_type == SHT_SYMTAB && !read_symbols(loading, section)) return false;
    }
    return loading->symbols ? true : refuse(loading, "it has no symbols");
}

static const char *name_of(const struct loading *loading, const Elf64_Sym *symbol) {
    return symbol->st_name < loading->names_bytes ? loading->names + symbol->st_name : "";
}

// -- memory ----------------------------------------------------------------------------------------------------------

static bool is_code(const Elf64_Shdr *section) { return section->sh_flags & SHF_EXECINSTR; }

static bool place_sections(struct loading *loading, bool code) {
    for (unsigned i = 0; i < loading->sections_count; i++) {
        const Elf64_Shdr *section = &loading->sections[i];
        size_t alignment = section->sh_addralign ? section->sh_addralign : 1;
        if (!(section->sh_flags & SHF_ALLOC) || is_code(section) != code) continue;
        if (alignment > PAGE_BYTES || section->sh_size > OBJECT_BYTES_MAX || loading->used > OBJECT_BYTES_MAX)
            return refuse(loading, "it is too large");
        loading->used = align(loading->used, alignment);
        loading->places[i] = loading->used;
        loading->used += section->sh_size;
    }
    return true;
}

// Gives each section its place, maps that much, and copies the sections there.
static bool map_sections(struct loading *loading) {
    if (!place_sections(loading, true)) return false;
    size_t jumps = align(loading->used, JUMP_BYTES);
    loading->code_bytes = align(jumps + loading->symbols_count * (size_t)JUMP_BYTES, PAGE_BYTES);
    loading->used = loading->code_bytes;
    if (!place_sections(loading, false)) return false;
    size_t slots = align(loading->used, 8);
    loading->size = align(slots + loading->symbols_count * sizeof(uint64_t), PAGE_BYTES);
    void *memory = mmap(NULL, loading->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return refuse(loading, "no memory is left for it");
    loading->memory = memory;
    loading->jumps = loading->memory + jumps;
    loading->slots = loading->memory + slots;
    for (unsigned i = 0; i < loading->sections_count; i++) {
        const Elf64_Shdr *section = &loading->sections[i];
        if (!(section->sh_flags & SHF_ALLOC)) continue;
        loading->places[i] += (uint64_t)loading->memory;
        if (section->sh_type != SHT_NOBITS)
            memcpy((void *)loading->places[i], loading->content + section->sh_offset, section->sh_size);
    }
    return true;
}

// -- symbols ---------------------------------------------------------------------------------------------------------

// Where a symbol lies: in the object, or in the runtime.
static bool find_symbol(struct loading *loading, unsigned index, uint64_t *address, bool *is_elsewhere) {
    if (index >= loading->symbols_count) return refuse(loading, "it refers to a symbol that it has not");
    const Elf64_Sym *symbol = &loading->symbols[index];
    *is_elsewhere = symbol->st_shndx == SHN_UNDEF;
    if (*is_elsewhere) {
        const char *name = name_of(loading, symbol);
        *address = *name ? (uint64_t)kernel_function_find(name) : 0;
        return *address ? true : refuse(loading, "it calls '%.100s', which the runtime does not have", name);
    }
    if (symbol->st_shndx >= loading->sections_count || !loading->places[symbol->st_shndx] ||
        symbol->st_value > loading->sections[symbol->st_shndx].sh_size)
        return refuse(loading, "the symbol '%.100s' is nowhere in it", name_of(loading, symbol));
    *address = loading->places[symbol->st_shndx] + symbol->st_value;
    return true;
}

// jmp *(the 8 bytes after it)
static uint64_t jump_to(struct loading *loading, unsigned index, uint64_t address) {
    static const unsigned char JUMP[] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0x66, 0x90};
    char *jump = loading->jumps + (size_t)index * JUMP_BYTES;
    memcpy(jump, JUMP, sizeof JUMP);
    memcpy(jump + sizeof JUMP, &address, sizeof address);
    return (uint64_t)jump;
}

static uint64_t slot_with(struct loading *loading, unsigned index, uint64_t address) {
    char *slot = loading->slots + (size_t)index * sizeof address;
    memcpy(slot, &address, sizeof address);
    return (uint64_t)slot;
}

// -- relocations -----------------------------------------------------------------------------------------------------

static bool relocate(struct loading *loading, uint64_t place, uint64_t room, const Elf64_Rela *entry) {
    unsigned type = ELF64_R_TYPE(entry->r_info), index = (unsigned)ELF64_R_SYM(entry->r_info);
    uint64_t address, wanted;
    bool is_elsewhere, is_wide = type == R_X86_64_64 || type == R_X86_64_PC64;
    if (type == R_X86_64_NONE) return true;
    if (room < (is_wide ? 8 : 4)) return refuse(loading, "a relocation is damaged");
    if (!find_symbol(loading, index, &address, &is_elsewhere)) return false;
    switch (type) {
        case R_X86_64_64: wanted = address + (uint64_t)entry->r_addend; break;
        case R_X86_64_PC64: wanted = address + (uint64_t)entry->r_addend - place; break;
        case R_X86_64_PC32:
        case R_X86_64_PLT32:
            if (is_elsewhere) address = jump_to(loading, index, address);
            wanted = address + (uint64_t)entry->r_addend - place;
            break;
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX:
            wanted = slot_with(loading, index, address) + (uint64_t)entry->r_addend - place;
            break;
        default: return refuse(loading, "it has a relocation of kind %u, which is not known", type);
    }
    if (!is_wide && (int64_t)wanted != (int32_t)wanted) return refuse(loading, "a relocation reaches too far");
    memcpy((void *)place, &wanted, is_wide ? 8 : 4);
    return true;
}

static bool relocate_sections(struct loading *loading) {
    for (unsigned i = 0; i < loading->sections_count; i++) {
        const Elf64_Shdr *section = &loading->sections[i];
        if (section->sh_type != SHT_RELA || section->sh_info >= loading->sections_count) continue;
        uint64_t target = loading->places[section->sh_info], room = loading->sections[section->sh_info].sh_size;
        for (uint64_t at = 0; target && at + sizeof(Elf64_Rela) <= section->sh_size; at += sizeof(Elf64_Rela)) {
            Elf64_Rela entry;
            memcpy(&entry, loading->content + section->sh_offset + at, sizeof entry);
            if (entry.r_offset > room) return refuse(loading, "a relocation is damaged");
            if (!relocate(loading, target + entry.r_offset, room - entry.r_offset, &entry)) return false;
        }
    }
    return true;
}

// -- tables of the kernel --------------------------------------------------------------------------------------------

// Tables of the compiler are aligned; where a damaged object puts one elsewhere, it is not there.
static uint64_t find_exported(struct loading *loading, const char *name, uint64_t bytes, size_t alignment) {
    for (unsigned i = 0; i < loading->symbols_count; i++) {
        const Elf64_Sym *symbol = &loading->symbols[i];
        uint64_t address;
        bool is_elsewhere;
        if (ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL || symbol->st_shndx == SHN_UNDEF) continue;
        if (strcmp(name_of(loading, symbol), name) || !find_symbol(loading, i, &address, &is_elsewhere)) continue;
        uint64_t room = loading->sections[symbol->st_shndx].sh_size - symbol->st_value;
        return bytes <= room && address % alignment == 0 ? address : 0;
    }
    return 0;
}

#define TABLE(name, type, count) \
    ((const type *)find_exported(loading, "quiesce_kernel_" name, (uint64_t)(count) * sizeof(type), _Alignof(type)))
#define FUNCTION(name, type) ((type *)find_exported(loading, "quiesce_kernel_" name, 1, 1))

static bool describe(struct loading *loading, struct object *object) {
    const struct kernel_info *info = TABLE("info", struct kernel_info, 1);
    if (!info || info->abi != KERNEL_ABI) return refuse(loading, "it was compiled for another version of the runtime");
    object->info = *info;
    object->parameters = TABLE("parameters", struct kernel_parameter, info->parameter_count);
    object->variables = TABLE("variables", struct kernel_variable, info->variable_count);
    object->sites = TABLE("sites", struct kernel_site, info->site_count);
    object->site_texts = TABLE("site_texts", char *const, info->site_count);
    object->files = TABLE("files", struct kernel_file, 1);
    object->arrays = TABLE("arrays", struct kernel_array, 1);
    object->states = TABLE("states", struct kernel_state, info->state_count);
    object->state_sites = TABLE("state_sites", int32_t, info->state_count);
    object->footprints = TABLE("footprints", int64_t, 1);
    if (object->footprints && object->footprints[0] > 1)
        object->footprints = TABLE("footprints", int64_t, (uint32_t)object->footprints[0]);
    object->block = FUNCTION("block", run_block);
    object->thread = FUNCTION("thread", run_thread);
    object->together = FUNCTION("together", run_together);
    bool whole = (object->parameters || !info->parameter_count) && (object->variables || !info->variable_count) &&
                 (object->states || !info->state_count) &&
                 (info->suspends ? object->thread != NULL : object->block != NULL);
    for (unsigned i = 0; whole && i < info->parameter_count; i++) {
        struct kernel_parameter each = object->parameters[i];
        whole = each.offset <= info->parameter_bytes && each.bytes <= info->parameter_bytes - each.offset;
    }
    return whole ? true : refuse(loading, "it lacks a part");
}

bool object_load(struct object *object, const char *content, size_t bytes, char reason[OBJECT_REASON_BYTES]) {
    static struct loading loading;  // large; the runtime's lock is held
    loading = (struct loading){.content = content, .bytes = bytes, .reason = reason};
    *object = (struct object){0};
    bool loaded = read_header(&loading) && map_sections(&loading) && relocate_sections(&loading) &&
                  describe(&loading, object) &&
                  (!mprotect(loading.memory, loading.code_bytes, PROT_READ | PROT_EXEC) ||
                   refuse(&loading, "this system does not let a process make code"));
    if (loaded) {
        object->memory = loading.memory;
        object->bytes = loading.size;
        return true;
    }
    if (loading.memory) munmap(loading.memory, loading.size);
    *object = (struct object){0};
    return false;
}

void object_unload(struct object *object) {
    if (object->memory) munmap(object->memory, object->bytes);
    *object = (struct object){0};
}
