// Handles of cuSOLVER (dense, sparse) and hipSOLVER; rocSOLVER has those of rocBLAS.
//
// Statuses and signatures are those of cusolverDn.h, cusolverSp.h and cusolver_common.h (the wheels nvidia-cusolver
// have them) and hipsolver-functions.h.

#include "libraries/calls.h"
#include "libraries/computed.h"

enum { DETERMINISM, MATH_MODE };

enum { DETERMINISM_MAX = 2, MATH_MAX = (1 << 16) - 1 };

static const struct library DENSE = {
    THING_SOLVER_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 7, .unsupported = 9,
    .first_values = {[DETERMINISM] = 1}};
static const struct library SPARSE = {
    THING_SOLVER_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 7, .unsupported = 9};
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

// -- what computes, most of it with a function that says how large its workspace is ----------------------------------

#define DENSE_ONE(name) COMPUTES(DENSE, cusolverDn##name)
#define DENSE_SIZED(name) DENSE_ONE(name) DENSE_ONE(name##_bufferSize)
#define DENSE_FOUR(name) DENSE_ONE(S##name) DENSE_ONE(D##name) DENSE_ONE(C##name) DENSE_ONE(Z##name)
#define SIZED_FOUR(name) DENSE_SIZED(S##name) DENSE_SIZED(D##name) DENSE_SIZED(C##name) DENSE_SIZED(Z##name)
#define SIZED_KINDS(real, of_complex) \
    DENSE_SIZED(S##real) DENSE_SIZED(D##real) DENSE_SIZED(C##of_complex) DENSE_SIZED(Z##of_complex)
#define SIZED_GENERIC(name) DENSE_SIZED(X##name)

SIZED_FOUR(potrf)
DENSE_FOUR(potrfBatched)
DENSE_FOUR(potrs)
DENSE_FOUR(potrsBatched)
SIZED_FOUR(potri)
SIZED_FOUR(lauum)
SIZED_FOUR(getrf)
DENSE_FOUR(getrs)
DENSE_FOUR(laswp)
SIZED_FOUR(sytrf)
SIZED_FOUR(sytri)
SIZED_FOUR(geqrf)
SIZED_FOUR(gebrd)
SIZED_KINDS(orgqr, ungqr)
SIZED_KINDS(ormqr, unmqr)
SIZED_KINDS(orgbr, ungbr)
SIZED_KINDS(sytrd, hetrd)
SIZED_KINDS(orgtr, ungtr)
SIZED_KINDS(ormtr, unmtr)
SIZED_KINDS(syevd, heevd)
SIZED_KINDS(syevdx, heevdx)
SIZED_KINDS(syevj, heevj)
SIZED_KINDS(syevjBatched, heevjBatched)
SIZED_KINDS(sygvd, hegvd)
SIZED_KINDS(sygvdx, hegvdx)
SIZED_KINDS(sygvj, hegvj)
SIZED_FOUR(gesvd)
SIZED_FOUR(gesvdj)
SIZED_FOUR(gesvdjBatched)
SIZED_FOUR(gesvdaStridedBatched)
DENSE_ONE(XsyevjGetResidual)
DENSE_ONE(XsyevjGetSweeps)
DENSE_ONE(XgesvdjGetResidual)
DENSE_ONE(XgesvdjGetSweeps)

SIZED_GENERIC(potrf)
DENSE_ONE(Xpotrs)
SIZED_GENERIC(getrf)
DENSE_ONE(Xgetrs)
SIZED_GENERIC(geqrf)
SIZED_GENERIC(trtri)
SIZED_GENERIC(sytrs)
SIZED_GENERIC(syevd)
SIZED_GENERIC(syevdx)
SIZED_GENERIC(syevBatched)
SIZED_GENERIC(geev)
SIZED_GENERIC(gesvd)
SIZED_GENERIC(gesvdp)
SIZED_GENERIC(gesvdr)

// Their names before CUDA 11.1.
DENSE_SIZED(Potrf)
DENSE_ONE(Potrs)
DENSE_SIZED(Getrf)
DENSE_ONE(Getrs)
DENSE_SIZED(Geqrf)
DENSE_SIZED(Syevd)
DENSE_SIZED(Syevdx)
DENSE_SIZED(Gesvd)

// Iterative refinement: the type of the operands, and that in which their matrix is factored.
#define REFINED(types) DENSE_SIZED(types##gesv) DENSE_SIZED(types##gels)
#define REFINED_IN_HALVES(letter, half, bfloat, tensor) \
    REFINED(letter##letter) REFINED(letter##half) REFINED(letter##bfloat) REFINED(letter##tensor)
REFINED_IN_HALVES(S, H, B, X)
REFINED_IN_HALVES(D, H, B, X)
REFINED_IN_HALVES(C, K, E, Y)
REFINED_IN_HALVES(Z, K, E, Y)
REFINED(DS)
REFINED(ZC)

// Sparse systems.
#define SPARSE_FOUR(name) \
    COMPUTES(SPARSE, cusolverSpS##name) COMPUTES(SPARSE, cusolverSpD##name) \
    COMPUTES(SPARSE, cusolverSpC##name) COMPUTES(SPARSE, cusolverSpZ##name)
SPARSE_FOUR(csrlsvqr)
SPARSE_FOUR(csrlsvchol)

// -- ROCm -------------------------------------------------------------------------------------------------------------

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
