// Functions of a driver or runtime that a client looks for with dlsym, and that are not there.
//
// The loader tells nobody of a lookup in vain. So the files that are loaded when this library is call a function here
// in place of dlsym: the addresses by which they call it are changed, as the loader itself sets them. That is all of a
// client that opens a driver by name, for it does so with code that was there before. A file that is loaded later is
// not watched.
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger/refusals.h"
#include "machine/settings.h"
#include "surfaces/names_by_release.h"

// Whether a library stands for a driver or runtime. What dlopen returned is its link map.
static bool is_watched(const struct link_map *library) {
    const char *slash = library->l_name ? strrchr(library->l_name, '/') : NULL;
    return slash && (!strncmp(slash + 1, "libcuda.so", 10) || !strncmp(slash + 1, "libamdhip64.so", 14));
}

// Looks up for a client. Which library comes next depends on who called: then the loader's function has to be the
// caller's, which a jump to it is.
__attribute__((noinline)) static void *look_up(void *handle, const char *name) {
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) return dlsym(handle, name);
    void *found = dlsym(handle, name);
    if (found || !name || !name_is_missed(name) || !is_watched(handle)) return found;
    refusal_missing(name, __builtin_return_address(0));
    return dlsym(handle, name);  // so that dlerror tells of this one
}

struct dynamic {
    const char *names;
    const ElfW(Sym) *symbols;
    const ElfW(Rela) *calls, *others;
    size_t calls_bytes, others_bytes, relative;
};

static const void *address(ElfW(Addr) base, ElfW(Addr) value) { return (void *)(value < base ? value + base : value); }

static bool read_dynamic(const struct dl_phdr_info *info, struct dynamic *of) {
    memset(of, 0, sizeof *of);
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) entry = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *place = address(info->dlpi_addr, entry->d_un.d_ptr);
        switch (entry->d_tag) {
            case DT_STRTAB: of->names = place; break;
            case DT_SYMTAB: of->symbols = place; break;
            case DT_JMPREL: of->calls = place; break;
            case DT_PLTRELSZ: of->calls_bytes = entry->d_un.d_val; break;
            case DT_RELA: of->others = place; break;
            case DT_RELASZ: of->others_bytes = entry->d_un.d_val; break;
            case DT_RELACOUNT: of->relative = entry->d_un.d_val; break;  // they come first
            default: break;
        }
    }
    return of->names && of->symbols;
}

// The part of a file that the loader has made read-only after it had set the addresses there.
static bool is_read_only(const struct dl_phdr_info *info, uintptr_t place) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO && place >= begin && place < begin + info->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

static void change(const struct dl_phdr_info *info, uintptr_t place) {
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(place & -page_bytes);
    bool is_closed = is_read_only(info, place);
    if (is_closed && mprotect(page, page_bytes, PROT_READ | PROT_WRITE)) return;
    __atomic_store_n((void **)place, (void *)(uintptr_t)look_up, __ATOMIC_RELEASE);
    if (is_closed) mprotect(page, page_bytes, PROT_READ);
}

static void change_all(const struct dl_phdr_info *info, const struct dynamic *of, const ElfW(Rela) *each,
                       const ElfW(Rela) *end) {
    for (; each < end; each++) {
        unsigned long kind = ELF64_R_TYPE(each->r_info), symbol = ELF64_R_SYM(each->r_info);
        if (!symbol || each->r_addend || (kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT)) continue;
        if (!strcmp(of->names + of->symbols[symbol].st_name, "dlsym")) change(info, info->dlpi_addr + each->r_offset);
    }
}

static int look_at(struct dl_phdr_info *info, size_t bytes, void *own) {
    (void)bytes;
    struct dynamic of;
    if (info->dlpi_addr == (uintptr_t)own || !read_dynamic(info, &of)) return 0;
    change_all(info, &of, of.calls, of.calls + of.calls_bytes / sizeof *of.calls);
    if (of.others_bytes / sizeof *of.others >= of.relative)
        change_all(info, &of, of.others + of.relative, of.others + of.others_bytes / sizeof *of.others);
    return 0;
}

__attribute__((constructor)) static void watch_lookups(void) {
    const char *settings_text = getenv("QUIESCE_SIMULATOR");
    Dl_info own;
    if (settings_text && strstr(settings_text, "folder=") && dladdr((void *)(uintptr_t)look_up, &own))
        dl_iterate_phdr(look_at, own.dli_fbase);
}
