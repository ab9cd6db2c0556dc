#include "kernels/grid.h"

#include <string.h>
#include <sys/mman.h>

#include "kernels/block.h"
#include "kernels/print.h"
#include "kernels/watch.h"
#include "machine/hidden.h"

enum { ALIGNMENT = 256, SLACK_BYTES = 256 };  // of shared memory: more than any type of PTX asks for

// Memory for the shared memory of a block, the parameters and the threads: what one kernel needed is kept for the next.
static char *scratch;
static size_t scratch_bytes;

static size_t align(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

void grids_close(void) {
    if (scratch) munmap(scratch, scratch_bytes);
    scratch = NULL;
    scratch_bytes = 0;
}

void grids_range(void (*add)(const void *start, size_t bytes)) { add(scratch, scratch_bytes); }

static bool reserve(size_t bytes) {
    if (bytes <= scratch_bytes) return true;
    grids_close();
    size_t whole = (bytes + (1 << 20) - 1) >> 20 << 20;
    void *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    scratch = memory;
    scratch_bytes = whole;
    return true;
}

// Kernels compute as IEEE 754 has it, whatever the client asked of its processor.
static uint32_t exchange_rounding(uint32_t word) {
    uint32_t before;
    __asm__ volatile("stmxcsr %0" : "=m"(before)::"memory");
    __asm__ volatile("ldmxcsr %0" ::"m"(word) : "memory");
    return before;
}

static int run_blocks(const struct object *object, struct kernel_context *context, char *threads) {
    for (context->block_index[2] = 0; context->block_index[2] < context->grid[2]; context->block_index[2]++)
        for (context->block_index[1] = 0; context->block_index[1] < context->grid[1]; context->block_index[1]++)
            for (context->block_index[0] = 0; context->block_index[0] < context->grid[0]; context->block_index[0]++) {
                int end = object->info.suspends ? block_run(object, context, threads) : object->block(context);
                if (end) return end;
            }
    return 0;
}

static int run_watched(const struct object *object, struct kernel_context *context, char *threads) {
    return sigsetjmp(watch_jump, 0) ? ENDED_BY_USER : run_blocks(object, context, threads);
}

struct grid_end grid_run(const struct grid *grid) {
    enum { USUAL_ROUNDING = 0x1f80 };
    static struct kernel_context context;  // it outlives a jump out of the kernel
    const struct object *object = grid->object;
    size_t shared_bytes = (size_t)object->info.static_shared_bytes + grid->dynamic_shared_bytes;
    size_t before_parameters = align(shared_bytes + SLACK_BYTES);
    size_t before_threads = before_parameters + align(object->info.parameter_bytes);
    if (!reserve(before_threads + block_bytes(object, grid->threads))) return (struct grid_end){.no_memory = true};
    memset(scratch, 0, shared_bytes);
    for (uint32_t i = 0; i < object->info.parameter_bytes; i++)
        scratch[before_parameters + i] = (char)HIDDEN(grid->hidden_parameters[i]);
    context = (struct kernel_context){.dynamic_shared_bytes = grid->dynamic_shared_bytes,
                                      .shared_base = (uint64_t)scratch,
                                      .parameters = (uint64_t)(scratch + before_parameters),
                                      .shared_bytes = (uint32_t)shared_bytes};
    memcpy(context.grid, grid->blocks, sizeof context.grid);
    memcpy(context.block, grid->threads, sizeof context.block);
    uint32_t before = exchange_rounding(USUAL_ROUNDING);
    watch_begin(grid->name, &context);
    int how = run_watched(object, &context, scratch + before_threads);
    watch_end();
    exchange_rounding(before);
    print_end();
    struct grid_end end = {.how = how};
    memcpy(end.block, context.block_index, sizeof end.block);
    return end;
}
