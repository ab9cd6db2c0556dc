// Handles of cuSPARSE, hipSPARSE and rocSPARSE, and the functions of cuSPARSE that compute.
//
// Statuses and signatures are those of cusparse.h (the wheels nvidia-cusparse have it), hipsparse-auxiliary.h and
// rocsparse-auxiliary.h.

#include "libraries/calls.h"
#include "libraries/computed.h"
#include "libraries/sparse_libraries.h"

enum { POINTER_MODE, MODE_MAX = 1 };

const struct library CUSPARSE = {
    THING_SPARSE_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 7, .unsupported = 10};
static const struct releases CUSPARSE_RELEASES = {1000, 100, {{11, 7, 5}}, {{12, 5, 10}}, {{12, 6, 2}}};

CREATE(CUSPARSE, cusparseCreate)
DESTROY(CUSPARSE, cusparseDestroy)
SET_STREAM(CUSPARSE, cusparseSetStream)
GET_STREAM(CUSPARSE, cusparseGetStream)
SET(CUSPARSE, cusparseSetPointerMode, POINTER_MODE, MODE_MAX)
GET(CUSPARSE, cusparseGetPointerMode, POINTER_MODE)
VERSION_OF(CUSPARSE, cusparseGetVersion, CUSPARSE_RELEASES)
PROPERTY(CUSPARSE, cusparseGetProperty, CUSPARSE_RELEASES)

// The names are enumerators, the texts are quiesce's own.
static const char *const STATUSES[][2] = {{"CUSPARSE_STATUS_SUCCESS", "success"},
                                          {"CUSPARSE_STATUS_NOT_INITIALIZED", "no handle of cuSPARSE"},
                                          {"CUSPARSE_STATUS_ALLOC_FAILED", "out of memory"},
                                          {"CUSPARSE_STATUS_INVALID_VALUE", "an argument is wrong"},
                                          {"CUSPARSE_STATUS_ARCH_MISMATCH", "the device has not what this needs"},
                                          {"CUSPARSE_STATUS_MAPPING_ERROR", "no access to a texture"},
                                          {"CUSPARSE_STATUS_EXECUTION_FAILED", "a kernel failed"},
                                          {"CUSPARSE_STATUS_INTERNAL_ERROR", "an error inside of cuSPARSE"},
                                          {"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "a matrix of this type"},
                                          {"CUSPARSE_STATUS_ZERO_PIVOT", "a pivot is missing or zero"},
                                          {"CUSPARSE_STATUS_NOT_SUPPORTED", "not supported"},
                                          {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "not enough resources"}};

static const char *sparse_status_text(unsigned status, unsigned which) {
    return status < sizeof STATUSES / sizeof *STATUSES ? STATUSES[status][which] : "unknown error";
}

EXPORT const char *SIMULATED(cusparseGetErrorName)(unsigned status) { return sparse_status_text(status, 0); }
EXPORT const char *SIMULATED(cusparseGetErrorString)(unsigned status) { return sparse_status_text(status, 1); }

// What computes.
#define SPARSE(name) COMPUTES(CUSPARSE, cusparse##name)
#define SPARSE_FOUR(name) SPARSE(S##name) SPARSE(D##name) SPARSE(C##name) SPARSE(Z##name)

SPARSE(Axpby)
SPARSE(Gather)
SPARSE(Scatter)
SPARSE(Rot)
SPARSE(SpVV_bufferSize)
SPARSE(SpVV)
SPARSE(SpMV_bufferSize)
SPARSE(SpMV_preprocess)
SPARSE(SpMV)
SPARSE(SpMM_bufferSize)
SPARSE(SpMM_preprocess)
SPARSE(SpMM)
SPARSE(SDDMM_bufferSize)
SPARSE(SDDMM_preprocess)
SPARSE(SDDMM)

SPARSE(SparseToDense_bufferSize)
SPARSE(SparseToDense)
SPARSE(DenseToSparse_bufferSize)
SPARSE(DenseToSparse_analysis)
SPARSE(DenseToSparse_convert)
SPARSE(Csr2cscEx2_bufferSize)
SPARSE(Csr2cscEx2)
SPARSE(Xcoo2csr)
SPARSE(Xcsr2coo)
SPARSE(CreateIdentityPermutation)
SPARSE(Xcoosort_bufferSizeExt)
SPARSE(XcoosortByRow)
SPARSE(XcoosortByColumn)
SPARSE(Xcsrsort_bufferSizeExt)
SPARSE(Xcsrsort)
SPARSE(Xcscsort_bufferSizeExt)
SPARSE(Xcscsort)
SPARSE_FOUR(nnz)
SPARSE_FOUR(nnz_compress)
SPARSE_FOUR(csr2csr_compress)

SPARSE_FOUR(csrgeam2_bufferSizeExt)
SPARSE(Xcsrgeam2Nnz)
SPARSE_FOUR(csrgeam2)
SPARSE(SpGEMM_workEstimation)
SPARSE(SpGEMM_estimateMemory)
SPARSE(SpGEMM_compute)
SPARSE(SpGEMM_copy)
SPARSE(SpGEMMreuse_workEstimation)
SPARSE(SpGEMMreuse_nnz)
SPARSE(SpGEMMreuse_copy)
SPARSE(SpGEMMreuse_compute)

SPARSE(SpSV_bufferSize)
SPARSE(SpSV_analysis)
SPARSE(SpSV_solve)
SPARSE(SpSV_updateMatrix)
SPARSE(SpSM_bufferSize)
SPARSE(SpSM_analysis)
SPARSE(SpSM_solve)
SPARSE(SpSM_updateMatrix)
SPARSE_FOUR(csrilu02_bufferSize)
SPARSE_FOUR(csrilu02_bufferSizeExt)
SPARSE_FOUR(csrilu02_analysis)
SPARSE_FOUR(csrilu02)
SPARSE_FOUR(csric02_bufferSize)
SPARSE_FOUR(csric02_bufferSizeExt)
SPARSE_FOUR(csric02_analysis)
SPARSE_FOUR(csric02)
SPARSE_FOUR(bsrmv)
SPARSE_FOUR(bsrmm)
SPARSE_FOUR(bsrsv2_bufferSize)
SPARSE_FOUR(bsrsv2_bufferSizeExt)
SPARSE_FOUR(bsrsv2_analysis)
SPARSE_FOUR(bsrsv2_solve)
SPARSE_FOUR(bsrsm2_bufferSize)
SPARSE_FOUR(bsrsm2_bufferSizeExt)
SPARSE_FOUR(bsrsm2_analysis)
SPARSE_FOUR(bsrsm2_solve)
SPARSE_FOUR(gtsv2_bufferSizeExt)
SPARSE_FOUR(gtsv2)
SPARSE_FOUR(gtsv2_nopivot_bufferSizeExt)
SPARSE_FOUR(gtsv2_nopivot)
SPARSE_FOUR(gtsv2StridedBatch_bufferSizeExt)
SPARSE_FOUR(gtsv2StridedBatch)
SPARSE_FOUR(gtsvInterleavedBatch_bufferSizeExt)
SPARSE_FOUR(gtsvInterleavedBatch)
SPARSE_FOUR(gpsvInterleavedBatch_bufferSizeExt)
SPARSE_FOUR(gpsvInterleavedBatch)

static const struct library HIPSPARSE = {THING_SPARSE_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 7};
static const struct library ROCSPARSE = {THING_SPARSE_HANDLE, .no_object = 1, .wrong = 7, .no_memory = 5, .failed = 6};
static const struct releases HIPSPARSE_RELEASES = {100000, 100, {{2, 3, 8}}, {{3, 2, 0}}, {{4, 0, 1}}};
static const struct releases ROCSPARSE_RELEASES = {100000, 100, {{2, 5, 4}}, {{3, 4, 0}}, {{4, 0, 2}}};

CREATE(HIPSPARSE, hipsparseCreate)
DESTROY(HIPSPARSE, hipsparseDestroy)
SET_STREAM(HIPSPARSE, hipsparseSetStream)
GET_STREAM(HIPSPARSE, hipsparseGetStream)
SET(HIPSPARSE, hipsparseSetPointerMode, POINTER_MODE, MODE_MAX)
GET(HIPSPARSE, hipsparseGetPointerMode, POINTER_MODE)
VERSION_OF(HIPSPARSE, hipsparseGetVersion, HIPSPARSE_RELEASES)

CREATE(ROCSPARSE, rocsparse_create_handle)
DESTROY(ROCSPARSE, rocsparse_destroy_handle)
SET_STREAM(ROCSPARSE, rocsparse_set_stream)
GET_STREAM(ROCSPARSE, rocsparse_get_stream)
SET(ROCSPARSE, rocsparse_set_pointer_mode, POINTER_MODE, MODE_MAX)
GET(ROCSPARSE, rocsparse_get_pointer_mode, POINTER_MODE)
VERSION_OF(ROCSPARSE, rocsparse_get_version, ROCSPARSE_RELEASES)
