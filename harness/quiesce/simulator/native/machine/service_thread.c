#include "machine/service_thread.h"

#include <signal.h>
#include <stddef.h>

#include "machine/lock.h"

bool service_thread_make(pthread_t *thread, void *(*work)(void *)) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);  // host functions of the client run in such threads, and may meet order/guard.h
    pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread is born with its maker's mask
    lock_expect_threads();
    bool made = !pthread_create(thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (made) pthread_detach(*thread);
    return made;
}
