// Objects of cuSPARSE that go from call to call: what is known of work in several steps, of factors, and the
// description of a matrix that its older functions take.
//
// They are opaque; quiesce.libraries reads and writes them in the client's memory. Signatures and enumerators are those
// of cusparse.h.

#include <stdlib.h>
#include <string.h>

#include "libraries/computed.h"
#include "libraries/sparse_libraries.h"

enum { SUCCESS = 0, NO_MEMORY = 2, WRONG = 3, ZERO_PIVOT = 9 };

static int make(void **made, size_t bytes) {
    if (!made) return WRONG;
    *made = calloc(1, bytes);
    return *made ? SUCCESS : NO_MEMORY;
}

static int destroy(void *object, size_t bytes) {
    if (object) explicit_bzero(object, bytes);
    free(object);
    return SUCCESS;
}

// -- steps -----------------------------------------------------------------------------------------------------------

// As quiesce.libraries.sparse_steps has it.
struct steps {
    int64_t done, is_updated;        // the last step; whether values were given after it
    uint64_t buffers[5], bytes[5];   // what each step was given, which the next ones read
    int64_t products, count;         // of elements, and the result's elements
};

#define STEPS(name)                                                                                                 \
    EXPORT int COMPUTED(cusparse##name##_createDescr)(void **made) { return make(made, sizeof(struct steps)); }      \
    EXPORT int COMPUTED(cusparse##name##_destroyDescr)(void *steps) { return destroy(steps, sizeof(struct steps)); }
STEPS(SpSV)
STEPS(SpSM)
STEPS(SpGEMM)

EXPORT int COMPUTED(cusparseSpGEMM_getNumProducts)(const struct steps *steps, int64_t *products) {
    if (!steps || !products) return WRONG;
    *products = steps->products;
    return SUCCESS;
}

// -- descriptions of matrices ----------------------------------------------------------------------------------------

// As quiesce.libraries.sparse_operands has it.
struct description {
    int32_t type, fill_mode, diagonal, base;
};

EXPORT int COMPUTED(cusparseCreateMatDescr)(void **made) { return make(made, sizeof(struct description)); }
EXPORT int COMPUTED(cusparseDestroyMatDescr)(void *of) { return destroy(of, sizeof(struct description)); }

#define DESCRIBES(name, member, most)                                                                              \
    EXPORT int COMPUTED(cusparseSetMat##name)(struct description *of, int value) {                                \
        if (!of || value < 0 || value > (most)) return WRONG;                                                      \
        of->member = value;                                                                                        \
        return SUCCESS;                                                                                            \
    }                                                                                                              \
    EXPORT int COMPUTED(cusparseGetMat##name)(const struct description *of) { return of ? of->member : 0; }
DESCRIBES(Type, type, 3)
DESCRIBES(FillMode, fill_mode, 1)
DESCRIBES(DiagType, diagonal, 1)
DESCRIBES(IndexBase, base, 1)

// -- factors ---------------------------------------------------------------------------------------------------------

// As quiesce.libraries.sparse_factors has it.
struct factors {
    int32_t pivot, boosts;  // the first that is missing or zero, or -1, once it was asked for
    uint64_t tolerance, boost;
};

#define FACTORS(name)                                                                                         \
    EXPORT int COMPUTED(cusparseCreate##name##Info)(void **made) { return make(made, sizeof(struct factors)); } \
    EXPORT int COMPUTED(cusparseDestroy##name##Info)(void *of) { return destroy(of, sizeof(struct factors)); }
FACTORS(Csrilu02)
FACTORS(Csric02)
FACTORS(Bsrsv2)
FACTORS(Bsrsm2)

// "Blocking calls", which tell the host through the object what they found.
static int find_pivot(const char *name, uint64_t handle, struct factors *factors, int *position) {
    if (!factors || !position) return WRONG;
    const uint64_t words[HOSTED_WORDS] = {handle, (uint64_t)factors, (uint64_t)position};
    const double floats[HOSTED_FLOATS] = {0};
    int status = library_compute(name, &CUSPARSE, handle, NULL, words, floats);
    return status || factors->pivot < 0 ? status : ZERO_PIVOT;
}

#define FINDS_PIVOT(name)                                                                              \
    EXPORT int COMPUTED(name)(uint64_t handle, struct factors *factors, int *position) {               \
        return find_pivot(#name, handle, factors, position);                                           \
    }
FINDS_PIVOT(cusparseXcsrilu02_zeroPivot)
FINDS_PIVOT(cusparseXcsric02_zeroPivot)
FINDS_PIVOT(cusparseXbsrsv2_zeroPivot)
FINDS_PIVOT(cusparseXbsrsm2_zeroPivot)

#define BOOSTS(name)                                                                                              \
    EXPORT int COMPUTED(name)(uint64_t handle, struct factors *factors, int enable, void *tolerance, void *value) { \
        (void)handle;                                                                                             \
        if (!factors) return WRONG;                                                                               \
        factors->boosts = enable;                                                                                 \
        factors->tolerance = (uint64_t)tolerance;                                                                 \
        factors->boost = (uint64_t)value;                                                                         \
        return SUCCESS;                                                                                           \
    }
BOOSTS(cusparseScsrilu02_numericBoost)
BOOSTS(cusparseDcsrilu02_numericBoost)
BOOSTS(cusparseCcsrilu02_numericBoost)
BOOSTS(cusparseZcsrilu02_numericBoost)
