// Parameters of cuSOLVER: of Jacobi's method, and of the functions with sizes of 64 bits.
//
// They lie on the heap, as those of cuBLASLt do. What they say changes how a GPU computes and not what comes out, so
// nothing reads them but the functions here. Signatures are those of cusolverDn.h; statuses those of cusolver_common.h.

#include <stdlib.h>

#include "libraries/computed.h"

enum { SUCCESS = 0, NO_MEMORY = 2, WRONG = 3 };
enum { FUNCTIONS = 2, ALGORITHM_MAX = 2, SWEEPS = 100 };

struct parameters {
    double tolerance;
    int sweeps, sorts;
    int algorithms[FUNCTIONS];
};

static int make(struct parameters **made) {
    if (!made) return WRONG;
    *made = calloc(1, sizeof **made);
    if (!*made) return NO_MEMORY;
    **made = (struct parameters){.sweeps = SWEEPS, .sorts = 1};
    return SUCCESS;
}

static int destroy(struct parameters *parameters) {
    if (!parameters) return WRONG;
    free(parameters);
    return SUCCESS;
}

#define MAKES(name) \
    EXPORT int COMPUTED(name)(struct parameters **made) { return make(made); }
#define DESTROYS(name) \
    EXPORT int COMPUTED(name)(struct parameters *parameters) { return destroy(parameters); }
#define SETS(name, type, field) \
    EXPORT int COMPUTED(name)(struct parameters *parameters, type value) { \
        if (!parameters) return WRONG; \
        parameters->field = value; \
        return SUCCESS; \
    }

// -- Jacobi's method -------------------------------------------------------------------------------------------------

MAKES(cusolverDnCreateSyevjInfo)
DESTROYS(cusolverDnDestroySyevjInfo)
SETS(cusolverDnXsyevjSetTolerance, double, tolerance)
SETS(cusolverDnXsyevjSetMaxSweeps, int, sweeps)
SETS(cusolverDnXsyevjSetSortEig, int, sorts)
MAKES(cusolverDnCreateGesvdjInfo)
DESTROYS(cusolverDnDestroyGesvdjInfo)
SETS(cusolverDnXgesvdjSetTolerance, double, tolerance)
SETS(cusolverDnXgesvdjSetMaxSweeps, int, sweeps)
SETS(cusolverDnXgesvdjSetSortEig, int, sorts)

// -- functions with sizes of 64 bits ---------------------------------------------------------------------------------

MAKES(cusolverDnCreateParams)
DESTROYS(cusolverDnDestroyParams)

EXPORT int COMPUTED(cusolverDnSetAdvOptions)(struct parameters *parameters, unsigned function, unsigned algorithm) {
    if (!parameters || function >= FUNCTIONS || algorithm > ALGORITHM_MAX) return WRONG;
    parameters->algorithms[function] = (int)algorithm;
    return SUCCESS;
}
