// The vendor's compilers and headers, which are installed for the client or not: the compiler of kernels, a process of
// the run's own, looks for them (quiesce.kernels.toolkits).
#pragma once

#include <stdbool.h>

enum { TOOLKIT_INCLUDES_MAX = 16 };

struct toolkit {
    void *library;        // NVRTC; NULL: there is none
    char *reason;          // why there is none, and what to install
    char *headers_reason;  // the same for headers; NULL: they are there
    char *includes[TOOLKIT_INCLUDES_MAX];  // options that name the folders of headers
    int includes_count;
};

// What was found when a client asked first.
const struct toolkit *toolkit_get(void);
