#include "machine/admission.h"

#include <pthread.h>

uint64_t admission_calls;
bool admission_limited;

static bool unloading, refuses_one;
static pthread_t unloader;  // while `unloading`
static pthread_t refused;   // while `refuses_one`

void admission_refuse_thread(bool refuse) {
    refuses_one = refuse;
    refused = pthread_self();
    admission_limited = refuse || unloading;
}

void admission_unload(void) {
    unloading = admission_limited = true;
    unloader = pthread_self();
}

enum status admission_of_thread(void) {
    if (unloading && !pthread_equal(unloader, pthread_self())) return UNLOADING;
    return refuses_one && pthread_equal(refused, pthread_self()) ? NOT_PERMITTED : OK;
}
