#include "system_calls.h"

#include "dynamic_symbols.h"
#include "memory.h"
#include "object.h"
#include "system.h"

/* The runtime protects pages that pending work uses, and the system answers EFAULT where it is to read or write there.
   So the runtime has to know before. Each function has a jump here, which leads to the C library until the runtime
   says otherwise. The C library's own table of names gives the address of the jump, whoever asks: the loader for a
   library that it binds now or later, or dlsym. Calls that the C library makes of itself are not seen. */

static const char *const names[] = {
    "read",      "pread",    "pread64",     "readv",     "preadv",    "preadv64",       "preadv2",  "preadv64v2",
    "recv",      "recvfrom", "recvmsg",     "recvmmsg",  "getrandom", "fread",          "write",    "fread_unlocked",
    "pwrite",    "pwrite64", "writev",      "pwritev",   "pwritev64", "pwritev2",       "send",     "pwritev64v2",
    "sendto",    "sendmsg",  "sendmmsg",    "fwrite",    "fwrite_unlocked"};
enum { COUNT = sizeof names / sizeof *names, JUMP_BYTES = 16, PAGE_BYTES = 4096 };

/* native/order/system_calls.h has the same. */
static struct row {
    const char *name;
    ElfW(Addr) original, target;  // of the C library, and where the jump leads
} rows[COUNT + 1] __attribute__((used));
_Static_assert(COUNT == 29 && sizeof *rows == 24, "the jumps below say the same");

extern const unsigned char system_call_jumps[] __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".balign 16\n"
        "system_call_jumps:\n"
        ".set number, 0\n"
        ".rept 29\n"
        "    .balign 16\n"
        "    endbr64\n"
        "    jmp *rows + 24 * number + 16(%rip)\n"
        ".set number, number + 1\n"
        ".endr\n");

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

void system_calls_follow(struct link_map *c_library) {
    dynamic_symbols table;
    if (!dynamic_symbols_open(&table, c_library) || !is_only_read(c_library, table.symbols)) return;
    char *first = (char *)((ElfW(Addr))table.symbols & -(ElfW(Addr))PAGE_BYTES);
    if ((const char *)table.symbols > table.names) return;  // the names follow, and say where the table ends
    size_t size_bytes = (size_t)(table.names - first + PAGE_BYTES - 1) & -(size_t)PAGE_BYTES;
    if (!memory_protect(first, size_bytes, PROT_READ | PROT_WRITE)) return;
    for (int each = 0; each < COUNT; each++) {
        ElfW(Addr) jump = (ElfW(Addr))system_call_jumps + (ElfW(Addr))(each * JUMP_BYTES);
        ElfW(Addr) original = dynamic_symbols_replace(&table, names[each], jump);
        if (original) rows[each] = (struct row){names[each], original, original};
    }
    memory_protect(first, size_bytes, PROT_READ);
}

void system_calls_tell(struct link_map *simulator) {
    dynamic_symbols table;
    if (!dynamic_symbols_open(&table, simulator)) return;
    struct row **place = (struct row **)dynamic_symbols_find(&table, "quiesce_system_calls");
    if (place) *place = rows;
}
