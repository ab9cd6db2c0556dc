// The vendor's compilers and headers, which are installed for the client or not: the compiler of kernels, a process of
// the run's own, looks for them (quiesce.simulator.kernels.toolkits).
#pragma once

enum toolkit_library { TOOLKIT_NVRTC, TOOLKIT_NVVM, TOOLKIT_LIBRARIES };
enum { TOOLKIT_INCLUDES_MAX = 16 };

struct toolkit {
    void *library;         // NULL: there is none
    char *reason;          // why there is none, and what to install
    char *headers_reason;  // what to install where headers are missing
    char *includes[TOOLKIT_INCLUDES_MAX];  // options that name the folders of headers
    int includes_count;
};

// What was found when a client asked first.
const struct toolkit *toolkit_get(enum toolkit_library which);

// A function of the vendor's library, or NULL.
void *toolkit_function(enum toolkit_library which, const char *name);
