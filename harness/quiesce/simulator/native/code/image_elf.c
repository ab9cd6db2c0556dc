// Variables in an ELF file: symbols of data, in the sections that a device's memory is made of.
//
// A cubin keeps them in .nv.global, .nv.global.init and .nv.constant… (CUDA Binary Utilities); its .nv.shared… sections
// are no memory of their own. A code object for AMD has them in allocated sections, beside a descriptor of each kernel,
// which is named like that with ".kd" behind (LLVM, "User Guide for AMDGPU Backend").
#include <elf.h>
#include <string.h>

#include "code/image.h"

enum { MACHINE_CUDA = 190, MACHINE_AMDGPU = 224 };

struct file {
    const char *image;
    size_t bytes;
    Elf64_Ehdr header;
};

static bool lies_in(const struct file *file, uint64_t offset, uint64_t size_bytes) {
    return offset <= file->bytes && size_bytes <= file->bytes - offset;
}

static bool read_section(const struct file *file, unsigned index, Elf64_Shdr *section) {
    uint64_t offset = file->header.e_shoff + (uint64_t)index * sizeof *section;
    if (index >= file->header.e_shnum || !lies_in(file, offset, sizeof *section)) return false;
    memcpy(section, file->image + offset, sizeof *section);
    return section->sh_type == SHT_NOBITS || lies_in(file, section->sh_offset, section->sh_size);
}

// A text that ends within a section of texts, or NULL.
static const char *text_at(const struct file *file, const Elf64_Shdr *texts, uint64_t offset) {
    if (texts->sh_type != SHT_STRTAB || offset >= texts->sh_size) return NULL;
    const char *text = file->image + texts->sh_offset + offset;
    return memchr(text, 0, texts->sh_size - offset) ? text : NULL;
}

static bool is_of_memory(const struct file *file, const Elf64_Shdr *section, const char *symbol) {
    if (!(section->sh_flags & SHF_ALLOC) || section->sh_flags & SHF_EXECINSTR) return false;
    if (file->header.e_machine == MACHINE_CUDA) {
        Elf64_Shdr names;
        if (!read_section(file, file->header.e_shstrndx, &names)) return false;
        const char *name = text_at(file, &names, section->sh_name);
        return name && (!strncmp(name, ".nv.global", 10) || !strncmp(name, ".nv.constant", 12));
    }
    size_t length = strlen(symbol);
    bool is_kernel = length > 3 && !strcmp(symbol + length - 3, ".kd");
    return file->header.e_machine != MACHINE_AMDGPU || !is_kernel;
}

// Whether a relocation changes some of a variable when the image is loaded: it holds an address then.
static bool is_relocated(const struct file *file, const Elf64_Sym *symbol) {
    Elf64_Shdr section;
    for (unsigned i = 0; i < file->header.e_shnum; i++) {
        if (!read_section(file, i, &section) || (section.sh_type != SHT_REL && section.sh_type != SHT_RELA)) continue;
        if (section.sh_info && section.sh_info != symbol->st_shndx) continue;  // 0: of the loader, by address
        size_t step = section.sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
        for (uint64_t at = 0; at + step <= section.sh_size; at += step) {
            Elf64_Rel relocation;  // as a relocation with an addend begins
            memcpy(&relocation, file->image + section.sh_offset + at, sizeof relocation);
            if (relocation.r_offset - symbol->st_value < symbol->st_size) return true;
        }
    }
    return false;
}

static bool read_symbol(const struct file *file, const Elf64_Sym *symbol, const char *name, add_variable *add,
                        void *context) {
    Elf64_Shdr section;
    // CUDA's compiler makes what has internal linkage local, and its own runtime copies to that by name.
    bool is_named = ELF64_ST_BIND(symbol->st_info) != STB_LOCAL || file->header.e_machine == MACHINE_CUDA;
    bool is_data = ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && is_named;
    if (!is_data || !symbol->st_size || !name || !*name || symbol->st_shndx == SHN_UNDEF) return true;
    if (!read_section(file, symbol->st_shndx, &section) || !is_of_memory(file, &section, name)) return true;
    uint64_t place = symbol->st_value - section.sh_addr;
    if (place > section.sh_size || symbol->st_size > section.sh_size - place) return true;
    bool is_zeros = section.sh_type == SHT_NOBITS;
    struct described described = {.name = name,
                                  .name_bytes = strlen(name),
                                  .size_bytes = symbol->st_size,
                                  .content = is_zeros ? NULL : file->image + section.sh_offset + place,
                                  .unclear = is_relocated(file, symbol)};
    return add(context, &described);
}

// A cubin's flags have its architecture: in the lowest byte and, virtual, in the third, or since ABI version 8 in the
// second byte, and the virtual one in a note of type 1000 (as ptxas 11.8 and 13.0 write them).
static int virtual_of(const struct file *file) {
    enum { CUDA_INFORMATION = 1000 };
    struct {
        Elf64_Nhdr header;
        char name[12];
        uint16_t version, architecture;
    } note;
    Elf64_Shdr section;
    for (unsigned i = 0; i < file->header.e_shnum; i++) {
        if (!read_section(file, i, &section) || section.sh_type != SHT_NOTE || section.sh_size < sizeof note) continue;
        memcpy(&note, file->image + section.sh_offset, sizeof note);
        bool is_known = note.header.n_type == CUDA_INFORMATION && note.header.n_namesz == sizeof note.name;
        if (is_known) return note.architecture;
    }
    return 0;
}

// Of what was linked here, those of its first input, which is compiled for the device.
static struct architectures of_inputs(const struct file *file, int device) {
    Elf64_Shdr section;
    for (unsigned i = 0; i < file->header.e_shnum; i++) {
        if (!read_section(file, i, &section) || section.sh_type != SECTION_OF_INPUT || !section.sh_size) continue;
        struct architectures found = image_architectures(file->image + section.sh_offset, section.sh_size, device);
        return (struct architectures){found.ptx, found.ptx ? device : 0};
    }
    return (struct architectures){0, 0};
}

struct architectures image_elf_architectures(const char *image, size_t bytes, int device) {
    enum { ABI_OF_CUDA_13 = 8 };
    struct file file = {.image = image, .bytes = bytes};
    if (bytes < sizeof file.header) return (struct architectures){0, 0};
    memcpy(&file.header, image, sizeof file.header);
    unsigned flags = file.header.e_flags;
    if (file.header.e_machine != MACHINE_CUDA) return (struct architectures){0, 0};
    if (!flags) return of_inputs(&file, device);
    if (file.header.e_ident[EI_ABIVERSION] < ABI_OF_CUDA_13)
        return (struct architectures){(int)(flags >> 16 & 0xff), (int)(flags & 0xff)};
    int binary = flags >> 8 & 0xff, ptx = virtual_of(&file);
    return (struct architectures){ptx ? ptx : binary, binary};
}

bool image_inputs(const char *image, size_t bytes, see_input *see, void *context) {
    struct file file = {.image = image, .bytes = bytes};
    Elf64_Shdr section;
    if (bytes < sizeof file.header || memcmp(image, ELFMAG, SELFMAG)) return true;
    memcpy(&file.header, image, sizeof file.header);
    for (unsigned i = 0; i < file.header.e_shnum; i++) {
        if (!read_section(&file, i, &section) || section.sh_type != SECTION_OF_INPUT || !section.sh_size) continue;
        const char *input = image + section.sh_offset;
        if (!input[section.sh_size - 1] && !see(context, input, section.sh_size - 1)) return false;
    }
    return true;
}

bool image_read_elf(const char *image, size_t bytes, add_variable *add, void *context, unsigned levels) {
    struct file file = {.image = image, .bytes = bytes};
    memcpy(&file.header, image, sizeof file.header);
    Elf64_Shdr section, texts;
    for (unsigned i = 0; i < file.header.e_shnum; i++) {
        if (!read_section(&file, i, &section)) continue;
        const char *input = section.sh_type == SECTION_OF_INPUT && section.sh_size ? image + section.sh_offset : NULL;
        if (input && input[section.sh_size - 1]) continue;  // damaged: a linked one ends each with a NUL
        if (input && !image_read_level(input, section.sh_size, add, context, levels - 1)) return false;
        bool is_table = section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM;
        if (!is_table || !read_section(&file, section.sh_link, &texts)) continue;
        for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            memcpy(&symbol, image + section.sh_offset + at, sizeof symbol);
            if (!read_symbol(&file, &symbol, text_at(&file, &texts, symbol.st_name), add, context)) return false;
        }
    }
    return true;
}
