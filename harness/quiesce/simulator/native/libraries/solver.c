// Handles of cuSOLVER (dense, sparse) and hipSOLVER; rocSOLVER has those of rocBLAS.
//
// Statuses and signatures are those of cusolverDn.h, cusolverSp.h and cusolver_common.h (the wheels nvidia-cusolver
// have them) and hipsolver-functions.h.

#include "libraries/calls.h"

enum { DETERMINISM, MATH_MODE };

enum { DETERMINISM_MAX = 2, MATH_MAX = (1 << 16) - 1 };

static const struct library DENSE = {
    THING_SOLVER_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 7, .first_values = {[DETERMINISM] = 1}};
static const struct library SPARSE = {THING_SOLVER_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 7};
static const struct releases RELEASES = {1000, 100, {{11, 4, 1}}, {{11, 7, 5}}, {{12, 0, 3}}};

CREATE(DENSE, cusolverDnCreate)
DESTROY(DENSE, cusolverDnDestroy)
SET_STREAM(DENSE, cusolverDnSetStream)
GET_STREAM(DENSE, cusolverDnGetStream)
SET(DENSE, cusolverDnSetDeterministicMode, DETERMINISM, DETERMINISM_MAX)
GET(DENSE, cusolverDnGetDeterministicMode, DETERMINISM)
SET(DENSE, cusolverDnSetMathMode, MATH_MODE, MATH_MAX)
GET(DENSE, cusolverDnGetMathMode, MATH_MODE)

CREATE(SPARSE, cusolverSpCreate)
DESTROY(SPARSE, cusolverSpDestroy)
SET_STREAM(SPARSE, cusolverSpSetStream)
GET_STREAM(SPARSE, cusolverSpGetStream)

VERSION(DENSE, cusolverGetVersion, RELEASES)
PROPERTY(DENSE, cusolverGetProperty, RELEASES)

static const struct library HIP = {
    THING_SOLVER_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 6, .first_values = {[DETERMINISM] = 1}};

CREATE(HIP, hipsolverCreate)
DESTROY(HIP, hipsolverDestroy)
SET_STREAM(HIP, hipsolverSetStream)
GET_STREAM(HIP, hipsolverGetStream)
SET(HIP, hipsolverSetDeterministicMode, DETERMINISM, DETERMINISM_MAX)
GET(HIP, hipsolverGetDeterministicMode, DETERMINISM)
CREATE(HIP, hipsolverDnCreate)
DESTROY(HIP, hipsolverDnDestroy)
SET_STREAM(HIP, hipsolverDnSetStream)
GET_STREAM(HIP, hipsolverDnGetStream)

static const struct library HIP_SPARSE = {
    THING_SOLVER_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 6};

CREATE(HIP_SPARSE, hipsolverSpCreate)
DESTROY(HIP_SPARSE, hipsolverSpDestroy)
SET_STREAM(HIP_SPARSE, hipsolverSpSetStream)
