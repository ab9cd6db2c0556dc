// cuBLAS and cuBLASLt, each of which has several files.
#pragma once

#include "libraries/object.h"

extern const struct library CUBLAS, CUBLAS_LT;
