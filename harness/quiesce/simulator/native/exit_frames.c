#include "exit_frames.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdbool.h>
#include <string.h>

enum { FRAMES_MAX = 32, FRAME_BYTES_MAX = 1 << 16, SAVED_BYTES = 6 * sizeof(uint64_t) };  // rbx, rbp, r12 to r15

static void *returns[FRAMES_MAX];  // not on the stack, where they are looked for

static bool is_in_exit(void *code) {
    Dl_info found;
    // The last thing that exit() does is a call that never returns: behind it begins another function.
    return dladdr((char *)code - 1, &found) && found.dli_sname && !strcmp(found.dli_sname, "exit");
}

// Returns where a return address lies on the stack, or 0. It looks between other functions' variables.
__attribute__((no_sanitize("address"))) static uint64_t find_slot(uint64_t from, uint64_t end, void *code) {
    if (end - from > FRAME_BYTES_MAX) end = from + FRAME_BYTES_MAX;
    for (uint64_t slot = from; slot < end; slot += sizeof(void *))
        if (*(void **)slot == code) return slot;
    return 0;
}

void exit_frames_scan(uint64_t end, void (*look)(uint64_t start, uint64_t end)) {
    uint64_t here = (uint64_t)__builtin_frame_address(0), slots[FRAMES_MAX], slot = here;
    int count = backtrace(returns, FRAMES_MAX);
    for (int i = 1; i < count && slot; i++) {
        slot = slots[i] = find_slot(slot, end, returns[i]);
        if (!slot || !is_in_exit(returns[i - 1])) continue;
        for (int saved = 1; saved <= i; saved++) look(slots[saved] - SAVED_BYTES, slots[saved]);
        look(slot, end);
        return;
    }
    look(here, end);
}
