#include "kernels/functions.h"

#include <stddef.h>
#include <string.h>

#include "kernels/arithmetic.h"
#include "kernels/call_stack.h"
#include "kernels/checks.h"
#include "kernels/device_heap.h"
#include "kernels/memory_races.h"
#include "kernels/print.h"
#include "kernels/ranges.h"
#include "kernels/rounds.h"
#include "kernels/shared_checks.h"
#include "kernels/texture.h"

#define FUNCTION(name) {#name, (void (*)(void))name},
static const struct {
    const char *name;
    void (*address)(void);
} FUNCTIONS[] = {
    FUNCTION(quiesce_kernel_print) FUNCTION(quiesce_kernel_assert)
    FUNCTION(quiesce_kernel_follows)
    FUNCTION(quiesce_kernel_check) FUNCTION(quiesce_kernel_copy) FUNCTION(quiesce_kernel_check_copy)
    FUNCTION(quiesce_kernel_check_any) FUNCTION(quiesce_kernel_outside_local)
    FUNCTION(quiesce_kernel_shared) FUNCTION(quiesce_kernel_barrier) FUNCTION(quiesce_kernel_lanes)
    FUNCTION(quiesce_kernel_fence)
    FUNCTION(quiesce_kernel_copies_commit) FUNCTION(quiesce_kernel_copies_wait)
    FUNCTION(quiesce_kernel_texture) FUNCTION(quiesce_kernel_texture_query) FUNCTION(quiesce_kernel_texture_kind)
    FUNCTION(quiesce_kernel_surface)
    FUNCTION(quiesce_kernel_ranges) FUNCTION(quiesce_kernel_line)
    FUNCTION(quiesce_kernel_enter) FUNCTION(quiesce_kernel_leave) FUNCTION(quiesce_kernel_round)
    FUNCTION(quiesce_kernel_malloc) FUNCTION(quiesce_kernel_free)
};

void (*kernel_function_find(const char *name))(void) {
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (!strcmp(FUNCTIONS[i].name, name)) return FUNCTIONS[i].address;
    return kernel_arithmetic_find(name);
}
