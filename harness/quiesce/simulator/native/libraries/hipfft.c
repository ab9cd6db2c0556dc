// The front end that answers as libhipfft, and the plans of rocFFT (rocfft.h).

#define FFT(name) hipfft##name
#define NAME(name) "hipfft" #name
#define PLAN void *
#define PLAN_OF(handle) ((void *)(handle))
#define HANDLE_OF(plan) ((uint64_t)(plan))
#define LIBRARY HIPFFT

#include "libraries/computed.h"
#include "libraries/fft_calls.inc"

COMPUTES(HIPFFT, hipfftExecC2C)
COMPUTES(HIPFFT, hipfftExecZ2Z)
COMPUTES(HIPFFT, hipfftExecR2C)
COMPUTES(HIPFFT, hipfftExecD2Z)
COMPUTES(HIPFFT, hipfftExecC2R)
COMPUTES(HIPFFT, hipfftExecZ2D)
COMPUTES(HIPFFT, hipfftXtExec)

static const struct releases RELEASES = {10000, 100, {{1, 0, 12}}, {{1, 0, 18}}, {{1, 0, 20}}};

VERSION(HIPFFT, hipfftGetVersion, RELEASES)
PROPERTY(HIPFFT, hipfftGetProperty, RELEASES)

// -- rocFFT ----------------------------------------------------------------------------------------------------------

static const struct library ROCFFT = {THING_FFT_PLAN, .no_object = 2, .wrong = 2, .no_memory = 1, .failed = 1};

FUNCTION(rocfft_setup)(void) { return 0; }
FUNCTION(rocfft_cleanup)(void) { return 0; }

// A precision is single 0, double 1 or half 2. The client allocates the work area.
FUNCTION(rocfft_plan_create)(void **plan, int placement, int kind, int precision, size_t rank, const size_t *lengths,
                             size_t batch, void *description) {
    (void)placement, (void)kind, (void)description;
    static const unsigned BYTES[] = {8, 16, 4};
    enum status status = object_enter("rocfft_plan_create");
    bool fits = plan && lengths && precision >= 0 && precision <= 2;
    struct transform transform = {0};
    uint64_t bytes = 0, handle = 0;
    if (fits) transform = plan_transform((int)rank, lengths, true, (int64_t)batch, BYTES[precision]);
    if (!status && !(fits && plan_work_bytes(&transform, &bytes))) status = INVALID_VALUE;
    if (!status) status = object_make(&ROCFFT, &handle);
    if (status) return object_leave(&ROCFFT, status);
    object_find(&ROCFFT, handle)->values[WORK_BYTES] = (int64_t)bytes;
    *plan = (void *)handle;
    return object_leave(&ROCFFT, OK);
}

DESTROY(ROCFFT, rocfft_plan_destroy)

FUNCTION(rocfft_plan_get_work_buffer_size)(void *plan, size_t *bytes) {
    int answer;
    struct library_object *object =
        object_of_call("rocfft_plan_get_work_buffer_size", &ROCFFT, (uint64_t)plan, &answer);
    if (!object) return answer;
    if (bytes) *bytes = (size_t)object->values[WORK_BYTES];
    return object_leave(&ROCFFT, bytes ? OK : INVALID_VALUE);
}
