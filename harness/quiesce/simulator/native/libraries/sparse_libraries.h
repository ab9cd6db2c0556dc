// cuSPARSE, which has several files.
#pragma once

#include "libraries/object.h"

extern const struct library CUSPARSE;
