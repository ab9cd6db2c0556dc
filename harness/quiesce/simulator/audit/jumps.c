#include "jumps.h"

#include "memory.h"

enum { PAGE_BYTES = 4096 };

// jmp *0(%rip), and then the address.
static void write_jump(unsigned char *entry, ElfW(Addr) target) {
    static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
    for (unsigned each = 0; each < sizeof jump; each++) entry[each] = jump[each];
    for (unsigned each = 0; each < sizeof target; each++)
        entry[sizeof jump + each] = (unsigned char)(target >> 8 * each);
}

static const Elf64_Phdr *segment_of(const object *of, ElfW(Addr) address) {
    for (int each = 0; each < of->segment_count; each++) {
        const Elf64_Phdr *segment = &of->segments[each];
        if (segment->p_type == PT_LOAD && address - segment->p_vaddr < segment->p_filesz) return segment;
    }
    return NULL;
}

// Map the file again over pages that can't be made code any more, as SELinux has it for those that were written to.
static void put_back(const object *into, const Elf64_Phdr *segment, ElfW(Addr) low, size_t size_bytes,
                     const char *path) {
    long file = open_file(path, O_RDONLY), offset = (long)(segment->p_offset + low - into->base - segment->p_vaddr);
    const long arguments[] = {
        (long)low, (long)size_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, offset};
    if (file < 0) return;
    call_system_with_six(SYS_mmap, arguments);
    close_file((int)file);
}

const char *jumps_write(const object *into, const embedded_functions *found, const ElfW(Addr) *targets,
                        const char *path) {
    const embedded_function *first = &found->functions[0], *last = &found->functions[found->count - 1];
    const Elf64_Phdr *segment = segment_of(into, first->address);
    if (!segment || segment != segment_of(into, last->address + JUMP_BYTES - 1) || !(segment->p_flags & PF_X))
        return "its functions do not lie in code";
    ElfW(Addr) low = (into->base + first->address) & -(ElfW(Addr))PAGE_BYTES;
    size_t size_bytes = into->base + last->address + JUMP_BYTES - low;
    size_bytes = (size_bytes + PAGE_BYTES - 1) & -(size_t)PAGE_BYTES;
    int as_before = PROT_READ | PROT_EXEC | (segment->p_flags & PF_W ? PROT_WRITE : 0);
    if (!memory_protect((void *)low, size_bytes, PROT_READ | PROT_WRITE))
        return "the system does not let its code be written to";
    for (int each = 0; each < found->count; each++)
        write_jump((unsigned char *)(into->base + found->functions[each].address), targets[each]);
    if (memory_protect((void *)low, size_bytes, as_before)) return NULL;
    put_back(into, segment, low, size_bytes, path);
    return "the system does not let code run that was written to";
}

const char *jumps_write_near(const object *into, ElfW(Addr) entry, ElfW(Addr) target, const char *path) {
    enum { NEAR_BYTES = 5 };
    const Elf64_Phdr *segment = segment_of(into, entry - into->base);
    long distance = (long)(target - (entry + NEAR_BYTES));
    if (!segment || !(segment->p_flags & PF_X) || distance != (int)distance) return "it does not lie near";
    ElfW(Addr) low = entry & -(ElfW(Addr))PAGE_BYTES;
    size_t size_bytes = (entry + NEAR_BYTES - low + PAGE_BYTES - 1) & -(size_t)PAGE_BYTES;
    if (!memory_protect((void *)low, size_bytes, PROT_READ | PROT_WRITE))
        return "the system does not let its code be written to";
    unsigned char *place = (unsigned char *)entry;
    *place = 0xe9;  // jmp
    for (unsigned each = 0; each < sizeof(int); each++) place[1 + each] = (unsigned char)(distance >> 8 * each);
    if (memory_protect((void *)low, size_bytes, PROT_READ | PROT_EXEC)) return NULL;
    put_back(into, segment, low, size_bytes, path);
    return "the system does not let code run that was written to";
}
