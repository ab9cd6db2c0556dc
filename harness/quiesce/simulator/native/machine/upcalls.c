#include "machine/upcalls.h"

struct upcalls upcalls;
