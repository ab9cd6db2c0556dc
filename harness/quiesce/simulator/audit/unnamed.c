#include "unnamed.h"

#include <stddef.h>

#include "embedded.h"
#include "system.h"

/* From 12.2 on two of them only jump to functions that have names: by these the run is known. In 11.8 none does; there
   it is known by the sizes of its functions. */

static const char *const since_12_2[] = {
    "cudaGetExportTable",
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaUnregisterFatBinary",
    "__cudaRegisterVar",
    "__cudaRegisterManagedVar",
    "__cudaRegisterHostVar",
    "__cudaRegisterFunction",
    "__cudaInitModule",
    "__cudaPushCallConfiguration",
    "__cudaPopCallConfiguration",
    "__cudaGetKernel",
    "__cudaLaunchKernel",
    "__cudaLaunchKernel_ptsz",
    "__cudaRegisterUnifiedTable",
};
static const char *const in_11_8[] = {
    "cudaGetExportTable",
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaUnregisterFatBinary",
    "__cudaRegisterVar",
    "__cudaRegisterManagedVar",
    "__cudaRegisterHostVar",
    "__cudaRegisterTexture",
    "__cudaRegisterSurface",
    "__cudaRegisterFunction",
    "__cudaInitModule",
    "__cudaPushCallConfiguration",
    "__cudaPopCallConfiguration",
};
static const uint32_t sizes_in_11_8[] = {
    0x4c, 0x28, 0x15, 0x22, 0x6f, 0x6f, 0x39, 0x5f, 0x59, 0x61, 0xcd, 0x94, 0xc9,
};
static const char launch[] = "cudaLaunchKernel", launch_by_thread[] = "cudaLaunchKernel_ptsz";

enum {
    COUNT_SINCE_12_2 = sizeof since_12_2 / sizeof *since_12_2,
    COUNT_IN_11_8 = sizeof in_11_8 / sizeof *in_11_8,
    LAUNCHES = 12,  // before the two that jump
    JUMP = 0xe9,
    JUMP_BYTES_NEAR = 5,
    JUMPING_BYTES_MAX = 16,
};

// Return the function that another one jumps to and does nothing else, by its number; -1 for any other.
static int jumps_to(const frames *in, int function) {
    uint32_t size_bytes = frames_size(in, function);
    if (size_bytes < JUMP_BYTES_NEAR || size_bytes > JUMPING_BYTES_MAX) return -1;
    ElfW(Addr) end = frames_start(in, function) + size_bytes;
    const unsigned char *jump = object_at(in->of, end - JUMP_BYTES_NEAR, JUMP_BYTES_NEAR);
    if (!jump || *jump != JUMP) return -1;
    int32_t distance;
    __builtin_memcpy(&distance, jump + 1, sizeof distance);
    ElfW(Addr) target = end + (ElfW(Addr))(int64_t)distance;
    int found = frames_find(in, target);
    return found >= 0 && frames_start(in, found) == target ? found : -1;
}

static int is_named(const references *by, int function, const char *name) {
    for (int each = 0; function >= 0 && each < by->count; each++)
        if (by->all[each].function == function && is_same(by->all[each].name, name)) return 1;
    return 0;
}

static int is_run_since_12_2(const frames *in, const references *by, int first) {
    return is_named(by, jumps_to(in, first + LAUNCHES), launch) &&
           is_named(by, jumps_to(in, first + LAUNCHES + 1), launch_by_thread);
}

static int is_run_of_11_8(const frames *in, const references *by, int first) {
    (void)by;
    for (int each = 0; each < COUNT_IN_11_8; each++)
        if (frames_size(in, first + each) != sizes_in_11_8[each]) return 0;
    return 1;
}

static int find_in(unnamed *run, const frames *in, const references *by,
                   int (*is_run)(const frames *, const references *, int), int from, int to) {
    int found = 0;
    for (int first = from; first + run->count <= to; first++) {
        if (!is_run(in, by, first)) continue;
        run->first = first;
        found++;
    }
    return found;
}

int unnamed_find(unnamed *run, const frames *in, const references *by) {
    // near the function that both kinds of runtimes have, and that no other kind of file has
    int from = in->count, to = 0, found = 0;
    for (int each = 0; each < by->count; each++) {
        if (!is_same(by->all[each].name, launch)) continue;
        int function = by->all[each].function;
        ElfW(Addr) start = frames_start(in, function);
        int low = start > RUNTIME_BYTES_MAX ? frames_find(in, start - RUNTIME_BYTES_MAX) : -1;
        if (low < 0) low = 0;
        if (low < from) from = low;
        if (function > to) to = function;
    }
    *run = (unnamed){0, COUNT_SINCE_12_2, since_12_2};
    found = find_in(run, in, by, is_run_since_12_2, from, to);
    if (found) return found == 1;
    *run = (unnamed){0, COUNT_IN_11_8, in_11_8};
    return find_in(run, in, by, is_run_of_11_8, from, to) == 1;
}
