#include "libraries/plan.h"

bool plan_work_bytes(const struct transform *transform, uint64_t *bytes) {
    if (transform->rank < 1 || transform->rank > 3 || transform->batch < 1) return false;
    if (__builtin_mul_overflow((uint64_t)transform->batch, transform->element_bytes, bytes)) return false;
    for (int i = 0; i < transform->rank; i++) {
        if (transform->lengths[i] < 1) return false;
        if (__builtin_mul_overflow(*bytes, (uint64_t)transform->lengths[i], bytes)) return false;
    }
    return true;
}

struct transform plan_transform(int rank, const void *lengths, bool wide, int64_t batch, unsigned element_bytes) {
    struct transform made = {.rank = rank, .batch = batch, .element_bytes = element_bytes};
    for (int i = 0; i < rank && i < 3 && lengths; i++)
        made.lengths[i] = wide ? ((const int64_t *)lengths)[i] : ((const int *)lengths)[i];
    return made;
}

struct transform plan_embed(struct transform transform, bool wide, const void *input, int64_t input_stride,
                            int64_t input_distance, const void *output, int64_t output_stride,
                            int64_t output_distance) {
    transform.is_embedded = input && output;
    transform.input = (struct embedding){.stride = input_stride, .distance = input_distance};
    transform.output = (struct embedding){.stride = output_stride, .distance = output_distance};
    for (int i = 0; transform.is_embedded && i < transform.rank && i < 3; i++) {
        transform.input.room[i] = wide ? ((const int64_t *)input)[i] : ((const int *)input)[i];
        transform.output.room[i] = wide ? ((const int64_t *)output)[i] : ((const int *)output)[i];
    }
    return transform;
}
