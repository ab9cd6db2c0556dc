#include "ledger/unwinding.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unwind.h>

#include "ledger/ledger.h"
#include "ledger/stack_log.h"

enum { SETS = 1 << 8, WAYS = 16, STACK_BYTES_MAX = 1 << 28 };

static struct {
    _Unwind_Reason_Code (*walk)(_Unwind_Trace_Fn, void *);
    _Unwind_Ptr (*address)(struct _Unwind_Context *, int *is_before);
    _Unwind_Word (*frame)(struct _Unwind_Context *);
} unwinder;

struct unwound {
    uint32_t count;
    bool is_repeatable;  // each address stands on one and the same stack, where its place says
    uint64_t addresses[NATIVE_FRAMES_MAX], places[NATIVE_FRAMES_MAX];
};

// Return addresses by the frame that they were seen from, innermost first, with their distances from it. As the code at
// an address says how far its caller's return address is, a stack whose words are the same one after another is the
// same. (Where a function takes room on the stack at run time, an outer frame could be an older one's in its place.)
static struct known {
    uint64_t frame;
    uint32_t thread, number, count;
    uint32_t distances[NATIVE_FRAMES_MAX];
    uint64_t addresses[NATIVE_FRAMES_MAX];
} known[SETS][WAYS];
static uint8_t oldest[SETS];

void unwinding_load(void) {
    if (unwinder.walk) return;
    void *library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    unwinder.address = (_Unwind_Ptr(*)(struct _Unwind_Context *, int *))dlsym(library, "_Unwind_GetIPInfo");
    unwinder.frame = (_Unwind_Word(*)(struct _Unwind_Context *))dlsym(library, "_Unwind_GetCFA");
    if (!unwinder.address || !unwinder.frame) return;
    unwinder.walk =
        (_Unwind_Reason_Code(*)(_Unwind_Trace_Fn, void *))dlsym(library, "_Unwind_Backtrace");
}

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *argument) {
    struct unwound *stack = argument;
    int is_before = 0;  // a signal interrupted the frame: no call pushed its address
    uint64_t address = unwinder.address(context, &is_before);
    if (!address || stack->count == NATIVE_FRAMES_MAX) return _URC_END_OF_STACK;
    uint64_t place = unwinder.frame(context) - sizeof(uint64_t);
    uint64_t first = stack->count ? stack->places[0] : place;
    bool is_near = place >= first && place - first < STACK_BYTES_MAX;
    if (is_before || !is_near || *(const uint64_t *)place != address) stack->is_repeatable = false;
    stack->addresses[stack->count] = address;
    stack->places[stack->count++] = place;
    return _URC_NO_REASON;
}

static void remember(struct known *entry, const struct unwound *stack, uint64_t frame, uint32_t number) {
    uint32_t first = 0, count = 0;
    while (first < stack->count && stack->places[first] != frame + sizeof(uint64_t)) first++;
    for (uint32_t i = first; i < stack->count; i++, count++) {
        entry->distances[count] = (uint32_t)(stack->places[i] - frame);
        entry->addresses[count] = stack->addresses[i];
    }
    entry->frame = count ? frame : 0;
    entry->thread = ledger_thread();
    entry->number = number;
    entry->count = count;
}

__attribute__((no_sanitize_address)) static bool is_same(const struct known *entry, uint64_t frame,
                                                            uint32_t thread) {
    if (entry->frame != frame || entry->thread != thread) return false;
    for (uint32_t i = 0; i < entry->count; i++)
        if (*(const uint64_t *)(frame + entry->distances[i]) != entry->addresses[i]) return false;
    return true;
}

__attribute__((noinline, cold)) static uint32_t unwind(uint64_t frame, uint64_t set) {
    if (!unwinder.walk) return 0;
    struct unwound stack = {.is_repeatable = true};
    unwinder.walk(note, &stack);
    uint32_t number = stack_log_native(stack.addresses, stack.count);
    if (number && stack.is_repeatable) remember(&known[set][oldest[set]++ % WAYS], &stack, frame, number);
    return number;
}

uint32_t native_frames_take(const void *frame) {
    uint64_t at = (uint64_t)frame, called_from;
    memcpy(&called_from, (const char *)frame + sizeof called_from, sizeof called_from);
    uint32_t thread = ledger_thread();
    uint64_t set = (at >> 4 ^ called_from) % SETS;  // one wrapper may be called from many places: hence the ways
    for (unsigned way = 0; way < WAYS; way++)
        if (is_same(&known[set][way], at, thread)) return known[set][way].number;
    return unwind(at, set);
}

void native_frames_forget(void) {
    for (unsigned set = 0; set < SETS; set++)
        for (unsigned way = 0; way < WAYS; way++) known[set][way].frame = 0;
}
