// CUPTI, which is asked for its version alone.  cupti_version.h counts them up to CUDA 12.9, and has CUDA's own from
// 13 on (what JAX's plugins were built with says so: 28 for 12.9, 130000 for 13.0).

#include "libraries/calls.h"

static const struct library CUPTI = {.wrong = 1};
static const struct releases RELEASES = {1, 1, {{17, 0, 0}}, {{28, 0, 0}}, {{130000, 0, 0}}};

VERSION(CUPTI, cuptiGetVersion, RELEASES)
