#include "system_calls.h"

#include "dynamic_symbols.h"
#include "system.h"

/* The runtime protects pages that pending work uses, and the system answers EFAULT where it is to read or write
   there. So the runtime has to know before, and so it has to of handlers for the fault of a protected page. Each
   function has a jump here, which leads to the C library until the runtime says otherwise. The C library's own table
   of names gives the address of the jump, whoever asks: the loader for a library that it binds now or later, or
   dlsym. Calls that the C library makes of itself are not seen. */

static const char *const names[] = {
    "read",      "pread",    "pread64",  "readv",     "preadv", "preadv64", "preadv2",       "preadv64v2",
    "recv",      "recvfrom", "recvmsg",  "recvmmsg",  "fread",  "write",    "fread_unlocked", "getrandom",
    "pwrite",    "pwrite64", "writev",   "pwritev",   "send",   "pwritev2", "pwritev64v2",   "pwritev64",
    "sendto",    "sendmsg",  "sendmmsg", "sigaction", "fwrite", "signal",   "__sysv_signal", "fwrite_unlocked"};
enum { COUNT = sizeof names / sizeof *names, JUMP_BYTES = 16 };

/* native/machine/c_library.h has the same. */
static struct row {
    const char *name;
    ElfW(Addr) original, target;  // of the C library, 0 where it has none; and where the jump leads
} rows[COUNT + 1] __attribute__((used));
_Static_assert(COUNT == 32 && sizeof *rows == 24, "the jumps below say the same");

extern const unsigned char system_call_jumps[] __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".balign 16\n"
        "system_call_jumps:\n"
        ".set number, 0\n"
        ".rept 32\n"
        "    .balign 16\n"
        "    endbr64\n"
        "    jmp *rows + 24 * number + 16(%rip)\n"
        ".set number, number + 1\n"
        ".endr\n");

void system_calls_follow(struct link_map *c_library) {
    dynamic_symbols table;
    if (!dynamic_symbols_unlock(&table, c_library)) return;
    for (int each = 0; each < COUNT; each++) {
        ElfW(Addr) jump = (ElfW(Addr))system_call_jumps + (ElfW(Addr))(each * JUMP_BYTES);
        ElfW(Addr) original = dynamic_symbols_replace(&table, names[each], jump);
        if (original || !rows[each].name) rows[each] = (struct row){names[each], original, original};
    }
    dynamic_symbols_lock(&table);
}

void system_calls_tell(struct link_map *simulator) {
    dynamic_symbols table;
    if (!dynamic_symbols_open(&table, simulator)) return;
    struct row **place = (struct row **)dynamic_symbols_find(&table, "quiesce_system_calls");
    if (place) *place = rows;
}
