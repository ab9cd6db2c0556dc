#include "kernels/cores.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/footprints.h"
#include "machine/hidden.h"
#include "machine/settings.h"
#include "memory/places.h"

enum { THREADS_WORTH = 1 << 8, THREADS_TOLD = 1 << 16 };  // of a launch that is judged, and that is told of

static uint64_t variable(const void *of, uint64_t number) {
    const struct object *object = of;
    return number < object->info.variable_count ? *object->variables[number].address : 0;
}

// Memory of a device alone: what the host shares, other threads may not touch while it is watched (order/guard.h).
static bool find(uint64_t address, uint64_t *start, uint64_t *bytes) {
    struct span span = memory_find(address);
    if (span.thing != THING_DEVICE || span.dead) return false;
    *start = span.start;
    *bytes = span.size_bytes;
    return true;
}

static bool has_threads(const struct grid *grid, uint64_t wanted) {
    uint64_t blocks = (uint64_t)grid->blocks[0] * grid->blocks[1] * grid->blocks[2];
    uint64_t threads = (uint64_t)grid->threads[0] * grid->threads[1] * grid->threads[2];
    return blocks > 1 && blocks * threads >= wanted;
}

static enum alone judge(const struct grid *grid) {
    const struct object *object = grid->object;
    unsigned char *parameters = malloc(object->info.parameter_bytes + 1);
    if (!parameters) return ALONE_NOT_UNDERSTOOD;
    for (uint32_t i = 0; i < object->info.parameter_bytes; i++)
        parameters[i] = (unsigned char)HIDDEN(grid->hidden_parameters[i]);
    enum alone why = footprints_judge(&(struct footprint_launch){.table = object->footprints,
                                                                 .parameters = parameters,
                                                                 .parameter_bytes = object->info.parameter_bytes,
                                                                 .grid = grid->blocks,
                                                                 .block = grid->threads,
                                                                 .variable = variable,
                                                                 .of = object,
                                                                 .find = find});
    free(parameters);
    return why;
}

unsigned cores_for(const struct kernel *kernel, const struct grid *grid) {
    bool is_usual = !settings.faults_stop && !settings.orders && !settings.is_strict && !grid->is_cooperative &&
                    settings.schedule != SCHEDULE_SEEDED;
    if (settings.kernel_threads < 2 || !is_usual || !has_threads(grid, THREADS_WORTH)) return 1;
    enum alone why = judge(grid);
    if (why && has_threads(grid, THREADS_TOLD) && kernel_tells_alone(kernel))
        fprintf(stderr, "quiesce: kernel '%.200s' runs on one core: %s\n", kernel->name, alone_in_words(why));
    return why ? 1 : settings.kernel_threads;
}
