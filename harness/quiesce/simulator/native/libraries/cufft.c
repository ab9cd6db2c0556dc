// The front end that answers as libcufft: its plans are small integers.

#include "ledger/handle.h"

#define FFT(name) cufft##name
#define NAME(name) "cufft" #name
#define PLAN int
#define PLAN_OF(handle) ((int)handle_integer(handle))
#define HANDLE_OF(plan) handle_of_integer((uint32_t)(plan))
#define LIBRARY CUFFT

#include "libraries/computed.h"
#include "libraries/fft_callbacks.h"
#include "libraries/fft_calls.inc"

static int run_plan(const struct computed *function, const uint64_t *words, const double *floats) {
    uint64_t plan = HANDLE_OF((int)words[function->handle]);
    return library_compute(function->name, function->library, plan, NULL, words, floats);
}

#define COMPUTES_PLAN(name) COMPUTES_BY(run_plan, CUFFT, 0, OF_HANDLE, name)

COMPUTES_PLAN(cufftExecC2C)
COMPUTES_PLAN(cufftExecZ2Z)
COMPUTES_PLAN(cufftExecR2C)
COMPUTES_PLAN(cufftExecD2Z)
COMPUTES_PLAN(cufftExecC2R)
COMPUTES_PLAN(cufftExecZ2D)
COMPUTES_PLAN(cufftXtExec)

// It has to be called "after plan creation …, but before using the planning function" (cufftXtSetJITCallback). The
// name with a number is the one that the header of CUDA 12 leads to.
static int set_callback(const char *function, int plan, const char *name, const void *code, size_t bytes, int type,
                        void **information) {
    int answer;
    struct library_object *object = object_of_call(function, &CUFFT, HANDLE_OF(plan), &answer);
    if (!object) return answer;
    if (type < 0 || type >= CALLBACK_TYPES) return refuse(INVALID_TYPE);
    if (!name || !code || !bytes) return refuse(CUFFT.wrong);
    if (object->values[MADE]) return refuse(INVALID_PLAN);
    uint64_t with = information ? (uint64_t)*information : 0;
    enum status status = fft_callbacks_set(&object->callbacks, function, (unsigned)type, name, code, bytes, with);
    if (!status) object->values[CALLBACKS] |= 1 << type;
    answer = object_leave(&CUFFT, status == NOT_FOUND ? INVALID_VALUE : status);
    return status == NOT_SUPPORTED ? CUFFT.unsupported : answer;
}

#define SET_JIT_CALLBACK(name) \
    EXPORT int COMPUTED(name)(int plan, const char *symbol, const void *code, size_t bytes, int type, void **with) { \
        return set_callback(#name, plan, symbol, code, bytes, type, with); \
    }
SET_JIT_CALLBACK(cufftXtSetJITCallback)
SET_JIT_CALLBACK(__cufftXtSetJITCallback_12_7)

static const struct releases RELEASES = {1000, 100, {{10, 9, 0}}, {{11, 4, 1}}, {{12, 0, 0}}};

VERSION(CUFFT, cufftGetVersion, RELEASES)
PROPERTY(CUFFT, cufftGetProperty, RELEASES)
