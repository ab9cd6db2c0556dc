#include "reach/exit_frames.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdbool.h>
#include <string.h>

enum { FRAMES_MAX = 64, FRAME_BYTES_MAX = 1 << 16, SAVED_BYTES = 6 * sizeof(uint64_t) };  // rbx, rbp, r12 to r15

// What never goes on with a program's own work, and what may call it once that is over: CPython prints the exception
// that ends a program, and exits from there.
static const char *const ENDS[] = {"exit", "Py_FinalizeEx", "Py_Finalize", "Py_Exit"};
static const char *const AROUND_ENDS[] = {"PyErr_Print", "PyErr_PrintEx"};

static void *returns[FRAMES_MAX];  // not on the stack, where they are looked for
static struct range {
    uint64_t start, end;
} ranges[FRAMES_MAX + 1];
static unsigned ranges_count;

static bool is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

// Returns the outermost frame that belongs to an end, or -1.
static int find_end(int count) {
    int found = -1;
    for (int i = 0; i < count; i++) {
        Dl_info info;
        // The last thing that exit() does is a call that never returns: behind it begins another function.
        if (!dladdr((char *)returns[i] - 1, &info) || !info.dli_sname) continue;
        bool ends = is_one_of(info.dli_sname, ENDS, sizeof ENDS / sizeof *ENDS);
        if (ends || (found >= 0 && is_one_of(info.dli_sname, AROUND_ENDS, sizeof AROUND_ENDS / sizeof *AROUND_ENDS)))
            found = i;
    }
    return found;
}

// Returns where a return address lies on the stack, or 0. It looks between other functions' variables.
__attribute__((no_sanitize("address"))) static uint64_t find_slot(uint64_t from, uint64_t end, void *code) {
    if (end - from > FRAME_BYTES_MAX) end = from + FRAME_BYTES_MAX;
    for (uint64_t slot = from; slot < end; slot += sizeof(void *))
        if (*(void **)slot == code) return slot;
    return 0;
}

static void add(uint64_t start, uint64_t end) { ranges[ranges_count++] = (struct range){start, end}; }

__attribute__((noinline)) void exit_frames_note(uint64_t end) {
    uint64_t here = (uint64_t)__builtin_frame_address(0), slot = here;
    __builtin_unwind_init();  // registers of those who called may hold a variable, too
    int count = backtrace(returns, FRAMES_MAX), last = find_end(count);
    ranges_count = 0;
    for (int i = 1; i <= last + 1 && i < count; i++) {
        slot = find_slot(slot, end, returns[i]);
        if (!slot) break;
        add(slot - SAVED_BYTES, slot);
    }
    bool is_found = last >= 0 && last + 1 < count && slot;
    if (!is_found) ranges_count = 0;
    add(is_found ? slot : here - SAVED_BYTES, end);
}

void exit_frames_each(void (*see)(uint64_t start, uint64_t end)) {
    for (unsigned i = 0; i < ranges_count; i++) see(ranges[i].start, ranges[i].end);
}
