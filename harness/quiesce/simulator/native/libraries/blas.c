// Handles of cuBLAS, cuBLASLt, hipBLAS, hipBLASLt and rocBLAS.
//
// Statuses and signatures are those of cublas_api.h and cublasLt.h (the wheels nvidia-cublas have them), hipblas.h,
// hipblaslt.h and rocblas-auxiliary.h. A cuBLAS handle comes with the default workspace of devices before Hopper,
// 4 MiB (cuBLAS, "cublasSetWorkspace"), and its end "implicitly calls cudaDeviceSynchronize()" (cublasDestroy).
// rocBLAS allocates memory in "computational functions" (rocBLAS, "Device memory allocation"), which are not simulated.

#include "libraries/blas_libraries.h"
#include "libraries/calls.h"
#include "libraries/computed.h"

enum { POINTER_MODE, MATH_MODE, ATOMICS_MODE, SM_TARGET, EMULATION, LAYOUT };

enum { MODE_MAX = 1, MATH_MAX = (1 << 16) - 1, SM_MAX = 1 << 16, EMULATION_MAX = 2 };

// -- CUDA ------------------------------------------------------------------------------------------------------------

const struct library CUBLAS = {
    THING_BLAS_HANDLE, .no_object = 1, .wrong = 7, .no_memory = 3, .failed = 14, .unsupported = 15,
    .workspace_bytes = 4 << 20, .waits = true};
// "any valid cublasHandle_t can be used in place of cublasLtHandle_t with a simple cast" (cuBLASLt)
const struct library CUBLAS_LT = {THING_BLAS_HANDLE, .no_object = 1, .wrong = 7, .no_memory = 3, .failed = 14,
                                  .unsupported = 15, .also = &CUBLAS};
static const struct releases CUBLAS_RELEASES = {10000, 100, {{11, 11, 3}}, {{12, 9, 1}}, {{13, 0, 0}}};

CREATE(CUBLAS, cublasCreate_v2)
DESTROY(CUBLAS, cublasDestroy_v2)
SET_STREAM(CUBLAS, cublasSetStream_v2)
GET_STREAM(CUBLAS, cublasGetStream_v2)
SET(CUBLAS, cublasSetPointerMode_v2, POINTER_MODE, MODE_MAX)
GET(CUBLAS, cublasGetPointerMode_v2, POINTER_MODE)
SET(CUBLAS, cublasSetAtomicsMode, ATOMICS_MODE, MODE_MAX)
GET(CUBLAS, cublasGetAtomicsMode, ATOMICS_MODE)
SET(CUBLAS, cublasSetMathMode, MATH_MODE, MATH_MAX)
GET(CUBLAS, cublasGetMathMode, MATH_MODE)
SET(CUBLAS, cublasSetSmCountTarget, SM_TARGET, SM_MAX)
GET(CUBLAS, cublasGetSmCountTarget, SM_TARGET)
SET(CUBLAS, cublasSetEmulationStrategy, EMULATION, EMULATION_MAX)
GET(CUBLAS, cublasGetEmulationStrategy, EMULATION)
SET_AREA(CUBLAS, cublasSetWorkspace_v2)
VERSION_OF(CUBLAS, cublasGetVersion_v2, CUBLAS_RELEASES)
PROPERTY(CUBLAS, cublasGetProperty, CUBLAS_RELEASES)

CREATE(CUBLAS_LT, cublasLtCreate)
DESTROY(CUBLAS_LT, cublasLtDestroy)
VERSION_SIZE(cublasLtGetVersion, CUBLAS_RELEASES)
PROPERTY(CUBLAS_LT, cublasLtGetProperty, CUBLAS_RELEASES)

// What computes, with sizes of 32 and of 64 bits.
#define BLAS(name) COMPUTES(CUBLAS, cublas##name) COMPUTES(CUBLAS, cublas##name##_64)
#define BLAS_REAL(name) BLAS(S##name) BLAS(D##name)
#define BLAS_COMPLEX(name) BLAS(C##name) BLAS(Z##name)
#define BLAS_FOUR(name) BLAS_REAL(name) BLAS_COMPLEX(name)

BLAS_FOUR(gemm_v2)
BLAS_FOUR(gemmStridedBatched)
BLAS_FOUR(gemmBatched)
BLAS_COMPLEX(gemm3m)
BLAS(Cgemm3mStridedBatched)
BLAS(Cgemm3mBatched)
BLAS(Hgemm)
BLAS(HgemmStridedBatched)
BLAS(HgemmBatched)
BLAS(GemmEx)
BLAS(GemmStridedBatchedEx)
BLAS(GemmBatchedEx)
BLAS(SgemmEx)
BLAS(CgemmEx)
BLAS(Cgemm3mEx)

BLAS_FOUR(scal_v2)
BLAS(Csscal_v2)
BLAS(Zdscal_v2)
BLAS_FOUR(axpy_v2)
BLAS_FOUR(copy_v2)
BLAS_FOUR(swap_v2)
BLAS_FOUR(rot_v2)
BLAS(Csrot_v2)
BLAS(Zdrot_v2)
BLAS_REAL(dot_v2)
BLAS_COMPLEX(dotu_v2)
BLAS_COMPLEX(dotc_v2)
BLAS_FOUR(gemv_v2)
BLAS_FOUR(gemvStridedBatched)
BLAS_FOUR(gemvBatched)
BLAS_REAL(ger_v2)
BLAS_COMPLEX(geru_v2)
BLAS_COMPLEX(gerc_v2)
BLAS_REAL(sbmv_v2)
BLAS_FOUR(trsm_v2)
BLAS_FOUR(trsmBatched)
BLAS_FOUR(trmm_v2)
BLAS_FOUR(syrk_v2)
BLAS_FOUR(syr2k_v2)
BLAS_FOUR(syrkx)
BLAS_FOUR(symm_v2)
BLAS_COMPLEX(herk_v2)
BLAS_COMPLEX(her2k_v2)
BLAS_COMPLEX(herkx)
BLAS_COMPLEX(hemm_v2)
BLAS_FOUR(geam)
BLAS_FOUR(dgmm)

// What has no function with sizes of 64 bits, or another result there.
#define NARROW(name) COMPUTES(CUBLAS, cublas##name)
#define NARROW_FOUR(name) NARROW(S##name) NARROW(D##name) NARROW(C##name) NARROW(Z##name)
#define NARROW_REALS(name) NARROW(S##name) NARROW(D##name) NARROW(Sc##name) NARROW(Dz##name)
#define NARROW_INDICES(name) NARROW(Is##name) NARROW(Id##name) NARROW(Ic##name) NARROW(Iz##name)

NARROW_REALS(nrm2_v2)
NARROW_REALS(asum_v2)
NARROW_INDICES(amax_v2)
NARROW_INDICES(amin_v2)
NARROW_FOUR(tpttr)
NARROW_FOUR(trttp)
NARROW_FOUR(getrfBatched)
NARROW_FOUR(getriBatched)
NARROW_FOUR(getrsBatched)
NARROW_FOUR(matinvBatched)
NARROW_FOUR(geqrfBatched)
NARROW_FOUR(gelsBatched)

// -- ROCm ------------------------------------------------------------------------------------------------------------

static const struct library HIPBLAS = {
    THING_BLAS_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 6, .unsupported = 7};
static const struct library HIPBLAS_LT = {THING_BLAS_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 6};
static const struct library ROCBLAS = {THING_BLAS_HANDLE, .no_object = 1, .wrong = 11, .no_memory = 5, .failed = 6};
static const struct releases HIPBLASLT_RELEASES = {100000, 100, {{0, 3, 0}}, {{0, 10, 0}}, {{1, 0, 0}}};

CREATE(HIPBLAS, hipblasCreate)
DESTROY(HIPBLAS, hipblasDestroy)
SET_STREAM(HIPBLAS, hipblasSetStream)
GET_STREAM(HIPBLAS, hipblasGetStream)
SET(HIPBLAS, hipblasSetPointerMode, POINTER_MODE, MODE_MAX)
GET(HIPBLAS, hipblasGetPointerMode, POINTER_MODE)
SET(HIPBLAS, hipblasSetAtomicsMode, ATOMICS_MODE, MODE_MAX)
GET(HIPBLAS, hipblasGetAtomicsMode, ATOMICS_MODE)
SET(HIPBLAS, hipblasSetMathMode, MATH_MODE, MATH_MAX)
GET(HIPBLAS, hipblasGetMathMode, MATH_MODE)
SET_AREA(HIPBLAS, hipblasSetWorkspace)

#define HIP(name) COMPUTES(HIPBLAS, hipblas##name)
#define HIP_REAL(name) HIP(S##name) HIP(D##name)
#define HIP_COMPLEX(name) HIP(C##name) HIP(Z##name)
#define HIP_FOUR(name) HIP_REAL(name) HIP_COMPLEX(name)

HIP_FOUR(gemm)
HIP_FOUR(gemmStridedBatched)
HIP_FOUR(gemmBatched)
HIP(Hgemm)
HIP(HgemmStridedBatched)
HIP(HgemmBatched)
HIP(GemmEx)
HIP(GemmStridedBatchedEx)
HIP(GemmBatchedEx)
HIP_FOUR(scal)
HIP(Csscal)
HIP(Zdscal)
HIP_FOUR(axpy)
HIP_FOUR(copy)
HIP_FOUR(swap)
HIP_FOUR(rot)
HIP(Csrot)
HIP(Zdrot)
HIP_REAL(dot)
HIP_COMPLEX(dotu)
HIP_COMPLEX(dotc)
HIP_REAL(nrm2)
HIP(Scnrm2)
HIP(Dznrm2)
HIP_REAL(asum)
HIP(Scasum)
HIP(Dzasum)
HIP(Isamax) HIP(Idamax) HIP(Icamax) HIP(Izamax)
HIP(Isamin) HIP(Idamin) HIP(Icamin) HIP(Izamin)
HIP_FOUR(gemv)
HIP_FOUR(gemvStridedBatched)
HIP_FOUR(gemvBatched)
HIP_REAL(ger)
HIP_COMPLEX(geru)
HIP_COMPLEX(gerc)
HIP_REAL(sbmv)
HIP_FOUR(trsm)
HIP_FOUR(trsmBatched)
HIP_FOUR(syrk)
HIP_FOUR(syr2k)
HIP_FOUR(syrkx)
HIP_FOUR(symm)
HIP_COMPLEX(herk)
HIP_COMPLEX(her2k)
HIP_COMPLEX(herkx)
HIP_COMPLEX(hemm)
HIP_FOUR(geam)
HIP_FOUR(dgmm)
HIP_FOUR(getrfBatched)
HIP_FOUR(getriBatched)
HIP_FOUR(getrsBatched)
HIP_FOUR(geqrfBatched)
HIP_FOUR(gelsBatched)

CREATE(HIPBLAS_LT, hipblasLtCreate)
DESTROY(HIPBLAS_LT, hipblasLtDestroy)
VERSION_OF(HIPBLAS_LT, hipblasLtGetVersion, HIPBLASLT_RELEASES)

CREATE(ROCBLAS, rocblas_create_handle)
DESTROY(ROCBLAS, rocblas_destroy_handle)
SET_STREAM(ROCBLAS, rocblas_set_stream)
GET_STREAM(ROCBLAS, rocblas_get_stream)
SET(ROCBLAS, rocblas_set_pointer_mode, POINTER_MODE, MODE_MAX)
GET(ROCBLAS, rocblas_get_pointer_mode, POINTER_MODE)
SET(ROCBLAS, rocblas_set_atomics_mode, ATOMICS_MODE, MODE_MAX)
GET(ROCBLAS, rocblas_get_atomics_mode, ATOMICS_MODE)
SET(ROCBLAS, rocblas_set_math_mode, MATH_MODE, MATH_MAX)
GET(ROCBLAS, rocblas_get_math_mode, MATH_MODE)
SET_AREA(ROCBLAS, rocblas_set_workspace)

EXPORT void SIMULATED(rocblas_initialize)(void) {}

// "If size > 0 sets the device memory size to the specified size", "if size == 0 frees the memory allocated so far".
FUNCTION(rocblas_set_device_memory_size)(void *handle, size_t bytes) {
    int answer;
    struct library_object *object =
        object_of_call("rocblas_set_device_memory_size", &ROCBLAS, (uint64_t)handle, &answer);
    return object ? object_leave(&ROCBLAS, object_take_workspace(object, bytes)) : answer;
}

FUNCTION(rocblas_get_device_memory_size)(void *handle, size_t *bytes) {
    int answer;
    struct library_object *object =
        object_of_call("rocblas_get_device_memory_size", &ROCBLAS, (uint64_t)handle, &answer);
    if (!object) return answer;
    if (bytes) *bytes = object->workspace_bytes;
    return object_leave(&ROCBLAS, bytes ? OK : INVALID_VALUE);
}
