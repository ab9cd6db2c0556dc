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
