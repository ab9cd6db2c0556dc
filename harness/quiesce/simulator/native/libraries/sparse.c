// Handles of cuSPARSE, hipSPARSE and rocSPARSE.
//
// Statuses and signatures are those of cusparse.h (the wheels nvidia-cusparse have it), hipsparse-auxiliary.h and
// rocsparse-auxiliary.h.

#include "libraries/calls.h"

enum { POINTER_MODE, MODE_MAX = 1 };

static const struct library CUSPARSE = {THING_SPARSE_HANDLE, .no_object = 1, .wrong = 3, .no_memory = 2, .failed = 7};
static const struct releases CUSPARSE_RELEASES = {1000, 100, {{11, 7, 5}}, {{12, 5, 10}}, {{12, 6, 2}}};

CREATE(CUSPARSE, cusparseCreate)
DESTROY(CUSPARSE, cusparseDestroy)
SET_STREAM(CUSPARSE, cusparseSetStream)
GET_STREAM(CUSPARSE, cusparseGetStream)
SET(CUSPARSE, cusparseSetPointerMode, POINTER_MODE, MODE_MAX)
GET(CUSPARSE, cusparseGetPointerMode, POINTER_MODE)
VERSION_OF(CUSPARSE, cusparseGetVersion, CUSPARSE_RELEASES)
PROPERTY(CUSPARSE, cusparseGetProperty, CUSPARSE_RELEASES)

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
