// Generators of cuRAND, hipRAND and rocRAND, on a device and on the host.
//
// Statuses, signatures and the kinds of generators are those of curand.h (the wheels nvidia-curand have it), hiprand.h
// and rocrand.h. A generator allocates its state when it generates, which is not simulated.

#include "libraries/calls.h"
#include "libraries/computed.h"

enum { KIND, SEED, OFFSET, ORDERING, DIMENSIONS, IS_HOST };  // as quiesce.libraries.random has them

enum { ORDERING_MAX = 201, DIMENSIONS_MAX = 20000 };

static const struct library CURAND = {
    THING_GENERATOR, .no_object = 101, .wrong = 104, .no_memory = 102, .failed = 203, .unsupported = 999,
    .first_values = {[DIMENSIONS] = 1}};
static const struct library HIPRAND = {
    THING_GENERATOR, .no_object = 101, .wrong = 104, .no_memory = 102, .failed = 203, .unsupported = 1000,
    .first_values = {[DIMENSIONS] = 1}};
static const struct library ROCRAND = {
    THING_GENERATOR, .no_object = 101, .wrong = 104, .no_memory = 102, .failed = 108,
    .first_values = {[DIMENSIONS] = 1}};
static const struct releases CURAND_RELEASES = {1000, 100, {{10, 3, 0}}, {{10, 3, 10}}, {{10, 4, 0}}};
static const struct releases ROCRAND_RELEASES = {100000, 100, {{2, 10, 17}}, {{3, 3, 0}}, {{4, 0, 0}}};

enum { TYPE_ERROR = 103 };  // of all three

static bool is_between(int kind, int first, int last) { return kind >= first && kind <= last; }

static bool is_of_cuda(int kind) {
    return is_between(kind, 100, 101) || kind == 121 || is_between(kind, 141, 142) || kind == 161 ||
           is_between(kind, 200, 204);
}
static bool is_of_rocm(int kind) { return is_between(kind, 400, 411) || is_between(kind, 500, 504); }

static int create(const char *function, const struct library *library, bool is_known, bool is_host, void **generator,
                  int kind) {
    enum status status = object_enter(function);
    if (!status && !generator) status = INVALID_VALUE;
    if (!status && !is_known) {
        object_leave(library, INVALID_VALUE);
        return TYPE_ERROR;
    }
    uint64_t made = 0;
    if (!status) status = object_make(library, &made);
    if (!status) object_find(library, made)->values[KIND] = kind;
    if (!status) object_find(library, made)->values[IS_HOST] = is_host;
    if (!status) *generator = (void *)made;
    return object_leave(library, status);
}

#define CREATE_ON(library, name, is_known, is_host) \
    FUNCTION(name)(void **generator, int kind) { \
        return create(#name, &library, is_known(kind), is_host, generator, kind); \
    }
#define CREATE_GENERATOR(library, name, is_known) CREATE_ON(library, name, is_known, false)

CREATE_GENERATOR(CURAND, curandCreateGenerator, is_of_cuda)
CREATE_ON(CURAND, curandCreateGeneratorHost, is_of_cuda, true)
DESTROY(CURAND, curandDestroyGenerator)
SET_STREAM(CURAND, curandSetStream)
SET_WIDE(CURAND, curandSetPseudoRandomGeneratorSeed, SEED)
SET_WIDE(CURAND, curandSetGeneratorOffset, OFFSET)
SET(CURAND, curandSetGeneratorOrdering, ORDERING, ORDERING_MAX)
SET(CURAND, curandSetQuasiRandomGeneratorDimensions, DIMENSIONS, DIMENSIONS_MAX)
VERSION(CURAND, curandGetVersion, CURAND_RELEASES)
PROPERTY(CURAND, curandGetProperty, CURAND_RELEASES)

COMPUTES(CURAND, curandGenerate)
COMPUTES(CURAND, curandGenerateLongLong)
COMPUTES(CURAND, curandGenerateUniform)
COMPUTES(CURAND, curandGenerateUniformDouble)
COMPUTES(CURAND, curandGenerateNormal)
COMPUTES(CURAND, curandGenerateNormalDouble)
COMPUTES(CURAND, curandGenerateLogNormal)
COMPUTES(CURAND, curandGenerateLogNormalDouble)
COMPUTES(CURAND, curandGeneratePoisson)

CREATE_GENERATOR(HIPRAND, hiprandCreateGenerator, is_of_rocm)
CREATE_GENERATOR(HIPRAND, hiprandCreateGeneratorHost, is_of_rocm)
DESTROY(HIPRAND, hiprandDestroyGenerator)
SET_STREAM(HIPRAND, hiprandSetStream)
SET_WIDE(HIPRAND, hiprandSetPseudoRandomGeneratorSeed, SEED)
SET_WIDE(HIPRAND, hiprandSetGeneratorOffset, OFFSET)
SET(HIPRAND, hiprandSetGeneratorOrdering, ORDERING, ORDERING_MAX)
SET(HIPRAND, hiprandSetQuasiRandomGeneratorDimensions, DIMENSIONS, DIMENSIONS_MAX)
VERSION(HIPRAND, hiprandGetVersion, ROCRAND_RELEASES)

COMPUTES(HIPRAND, hiprandGenerate)
COMPUTES(HIPRAND, hiprandGenerateLongLong)
COMPUTES(HIPRAND, hiprandGenerateUniform)
COMPUTES(HIPRAND, hiprandGenerateUniformDouble)
COMPUTES(HIPRAND, hiprandGenerateNormal)
COMPUTES(HIPRAND, hiprandGenerateNormalDouble)
COMPUTES(HIPRAND, hiprandGenerateLogNormal)
COMPUTES(HIPRAND, hiprandGenerateLogNormalDouble)
COMPUTES(HIPRAND, hiprandGeneratePoisson)

CREATE_GENERATOR(ROCRAND, rocrand_create_generator, is_of_rocm)
CREATE_GENERATOR(ROCRAND, rocrand_create_generator_host, is_of_rocm)
DESTROY(ROCRAND, rocrand_destroy_generator)
SET_STREAM(ROCRAND, rocrand_set_stream)
SET_WIDE(ROCRAND, rocrand_set_seed, SEED)
SET_WIDE(ROCRAND, rocrand_set_offset, OFFSET)
SET(ROCRAND, rocrand_set_ordering, ORDERING, ORDERING_MAX)
SET(ROCRAND, rocrand_set_quasi_random_generator_dimensions, DIMENSIONS, DIMENSIONS_MAX)
VERSION(ROCRAND, rocrand_get_version, ROCRAND_RELEASES)
