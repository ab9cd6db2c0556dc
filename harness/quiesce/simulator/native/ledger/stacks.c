#include "ledger/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/python_frames.h"
#include "ledger/stack_log.h"
#include "ledger/unwinding.h"

static uint32_t of_call;  // the stack of the call that is under way, once it was taken
static bool is_taken;

enum { JOINED_MAX = 1 << 10 };
static struct joined {
    uint32_t parts[2], number;
} joined[JOINED_MAX];

__attribute__((constructor)) static void load_unwinder(void) {
    const char *text = getenv("QUIESCE_SIMULATOR");
    if (text && strstr(text, "stacks=1")) unwinding_load();
}

// The record of a native and a Python stack; the last ones asked for are at hand.
static uint32_t record_of(uint32_t native, uint32_t python) {
    struct joined *place = &joined[(native ^ python * 31) % JOINED_MAX];
    if (place->parts[0] == native && place->parts[1] == python && place->number) return place->number;
    *place = (struct joined){{native, python}, 0};
    return place->number = stack_log_stack(place->parts);
}

__attribute__((noinline)) uint32_t stacks_take(void) {
    if (is_taken) return of_call;
    uint32_t native = native_frames_take(__builtin_frame_address(0));
    of_call = record_of(native, python_is_known ? python_frames_take() : 0);
    is_taken = true;
    return of_call;
}

void stacks_new_call(void) { is_taken = false; }

bool stacks_open(const char *folder) {
    if (!settings.stacks) return true;
    if (!stack_log_open(folder)) return false;
    unwinding_load();  // where a machine is opened by a caller who has it in his own process
    python_frames_open();
    return true;
}

void stacks_close(void) {
    stack_log_close();
    native_frames_forget();
    memset(joined, 0, sizeof joined);
}
