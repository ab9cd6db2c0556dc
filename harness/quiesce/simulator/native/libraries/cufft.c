// The front end that answers as libcufft: its plans are small integers.

#include "ledger/handle.h"

#define FFT(name) cufft##name
#define NAME(name) "cufft" #name
#define PLAN int
#define PLAN_OF(handle) ((int)handle_integer(handle))
#define HANDLE_OF(plan) handle_of_integer((uint32_t)(plan))
#define LIBRARY CUFFT

#include "libraries/computed.h"
#include "libraries/fft_calls.inc"

#define COMPUTES_PLAN(name) COMPUTES_WITH(CUFFT, HANDLE_OF((int)a0), name)

COMPUTES_PLAN(cufftExecC2C)
COMPUTES_PLAN(cufftExecZ2Z)
COMPUTES_PLAN(cufftExecR2C)
COMPUTES_PLAN(cufftExecD2Z)
COMPUTES_PLAN(cufftExecC2R)
COMPUTES_PLAN(cufftExecZ2D)
COMPUTES_PLAN(cufftXtExec)

static const struct releases RELEASES = {1000, 100, {{10, 9, 0}}, {{11, 4, 1}}, {{12, 0, 0}}};

VERSION(CUFFT, cufftGetVersion, RELEASES)
PROPERTY(CUFFT, cufftGetProperty, RELEASES)
