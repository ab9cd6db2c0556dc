#include "reach/snapshot.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "machine/mappings.h"

enum {
    PREPARATION_SECONDS = 5,  // without an end, it waits for a lock that a thread of the client holds
    SEARCH_SECONDS = 60,
    NAP_NANOSECONDS_MIN = 50000,
    NAP_NANOSECONDS_MAX = 5000000,
};

static volatile enum progress { BEGUN, PREPARED, DONE } *progress;  // shared with the copy

static sigjmp_buf unreadable;
static volatile uint64_t fault;

static void note_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    fault = (uint64_t)info->si_addr;
    siglongjmp(unreadable, 1);
}

static void catch_faults(void) {
    struct sigaction action = {.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGSEGV);
    sigaddset(&both, SIGBUS);
    sigprocmask(SIG_UNBLOCK, &both, NULL);
}

void snapshot_read(unsigned long start, unsigned long end, void (*read)(unsigned long start, unsigned long end)) {
    volatile unsigned long next = start;
    while (next < end) {
        if (!sigsetjmp(unreadable, 0)) {
            read(next, end);
            return;
        }
        if (fault < next || fault >= end) _exit(2);  // a fault of the search's own
        next = (fault / PAGE_BYTES + 1) * PAGE_BYTES;
    }
}

void snapshot_prepared(void) { *progress = PREPARED; }

// Waits for the copy. Whoever waits for every child of the process may have taken its end.
static bool is_over(pid_t child) {
    long ended = syscall(SYS_wait4, child, NULL, WNOHANG | __WCLONE, NULL);
    return ended == child || (ended < 0 && errno == ECHILD && kill(child, 0));
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void await(pid_t child) {
    long nap_nanoseconds = NAP_NANOSECONDS_MIN;
    for (double begin = seconds(); !is_over(child);) {
        double patience = *progress == BEGUN ? PREPARATION_SECONDS : SEARCH_SECONDS;
        if (seconds() - begin > patience) kill(child, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = nap_nanoseconds}, NULL);
        if (nap_nanoseconds < NAP_NANOSECONDS_MAX) nap_nanoseconds *= 2;
    }
}

bool snapshot_search(void (*search)(void)) {
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) return false;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // Without a signal at its end, so that no handler of the client's sees it.
    pid_t child = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        catch_faults();
        search();
        *progress = DONE;
        _exit(0);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child > 0) await(child);
    bool is_done = *progress == DONE;
    munmap((void *)progress, sizeof *progress);
    return is_done;
}
