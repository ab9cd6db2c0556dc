#include "named_stubs.h"

#include "memory.h"

/* A function is 22 bytes of code, with its name behind it: mov rdi, name; mov rax, answer; jmp rax. It leaves no frame
   of its own, so that call stacks show who called it. */

enum { BLOCK_BYTES = 1 << 16, CODE_BYTES = 24, ALIGNMENT = 16 };

static const char answering[] = "quiesce_answer_not_simulated";  // native/control.h
static unsigned char *block;
static size_t used;

static unsigned char *room_for(size_t size_bytes) {
    if (!block || used + size_bytes > BLOCK_BYTES) {
        if (!named_stubs_finish()) return NULL;
        block = memory_map(BLOCK_BYTES);
        used = 0;
    }
    if (!block) return NULL;
    unsigned char *place = block + used;
    used = (used + size_bytes + ALIGNMENT - 1) & -(size_t)ALIGNMENT;
    return place;
}

static unsigned char *put(unsigned char *place, const char *bytes, size_t count) {
    while (count--) *place++ = (unsigned char)*bytes++;
    return place;
}

ElfW(Addr) named_stub(const provided *by, const char *name) {
    ElfW(Addr) answer = dynamic_symbols_find(&by->simulator, answering);
    size_t name_bytes = length_of(name) + 1;
    unsigned char *code = answer ? room_for(CODE_BYTES + name_bytes) : NULL;
    if (!code) return 0;
    const char *kept = (const char *)code + CODE_BYTES;
    put(code + CODE_BYTES, name, name_bytes);
    unsigned char *place = put(code, "\x48\xbf", 2);
    place = put(place, (const char *)&kept, sizeof kept);
    place = put(place, "\x48\xb8", 2);
    place = put(place, (const char *)&answer, sizeof answer);
    put(place, "\xff\xe0", 2);
    return (ElfW(Addr))code;
}

int named_stubs_finish(void) {
    int is_done = !block || memory_protect(block, BLOCK_BYTES, PROT_READ | PROT_EXEC);
    block = NULL;  // code is never writable again
    return is_done;
}
