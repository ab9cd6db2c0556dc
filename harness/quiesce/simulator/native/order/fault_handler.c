#include "order/fault_handler.h"

#include <signal.h>
#include <unistd.h>

#include "machine/c_library.h"
#include "machine/lock.h"

typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);
typedef void (*signal_function(int, void (*)(int)))(int);

static bool (*meets)(uint64_t address, const void *state);
static pid_t process;  // whose handler it is; 0: none is installed
static sigaction_function *install = sigaction;
static signal_function *install_by_signal, *install_by_sysv_signal;

// What the program installed. A fault in another thread may read it, so it is written beside, and then shown.
static struct sigaction program[2];
static unsigned shown;

static void show(const struct sigaction *made) {
    unsigned next = !shown;
    program[next] = *made;
    __atomic_store_n(&shown, next, __ATOMIC_RELEASE);
}

static const struct sigaction *programs(void) { return &program[__atomic_load_n(&shown, __ATOMIC_ACQUIRE)]; }

// -- a fault ---------------------------------------------------------------------------------------------------------

// What the system does where there is no handler. An access is tried again; a signal that was sent has to be sent
// again.
static void end_process(int number, const siginfo_t *about) {
    bool is_sent = about->si_code <= 0;
    if (is_sent && programs()->sa_handler == SIG_IGN) return;
    install(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    if (is_sent) raise(number);
}

static void pass_on(int number, siginfo_t *about, void *state) {
    const struct sigaction to = *programs();
    if (!(to.sa_flags & SA_SIGINFO) && (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN)) {
        end_process(number, about);
        return;
    }
    sigset_t blocked = to.sa_mask;
    sigdelset(&blocked, SIGSEGV);  // its handler may use protected pages
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    if (to.sa_flags & SA_RESETHAND) show(&(struct sigaction){.sa_handler = SIG_DFL});
    if (to.sa_flags & SA_SIGINFO)
        to.sa_sigaction(number, about, state);
    else
        to.sa_handler(number);
}

static void handle(int number, siginfo_t *about, void *state) {
    if (about->si_code != SEGV_ACCERR || !meets((uint64_t)about->si_addr, state)) pass_on(number, about, state);
}

// -- handlers of the program -----------------------------------------------------------------------------------------

// The runtime installs its own, which are above this one, while it has the lock.
static bool is_programs(int number) { return number == SIGSEGV && process == getpid() && !lock_is_held(); }

static int follow_sigaction(int number, const struct sigaction *made, struct sigaction *before) {
    if (!is_programs(number)) return install(number, made, before);
    const struct sigaction old = *programs();
    if (made) show(made);
    if (before) *before = old;
    return 0;
}

static void (*follow(int number, void (*made)(int), int flags))(int) {
    struct sigaction action = {.sa_handler = made, .sa_flags = flags}, before;
    sigemptyset(&action.sa_mask);
    follow_sigaction(number, &action, &before);
    return before.sa_handler;
}

static void (*follow_signal(int number, void (*made)(int)))(int) {
    return is_programs(number) ? follow(number, made, SA_RESTART) : install_by_signal(number, made);
}

static void (*follow_sysv_signal(int number, void (*made)(int)))(int) {
    return is_programs(number) ? follow(number, made, SA_RESETHAND | SA_NODEFER) : install_by_sysv_signal(number, made);
}

static void lead(void) {
    sigaction_function *library = (sigaction_function *)c_library_lead("sigaction", NULL);
    install_by_signal = (signal_function *)c_library_lead("signal", NULL);
    install_by_sysv_signal = (signal_function *)c_library_lead("__sysv_signal", NULL);
    if (library) install = library;
    c_library_lead("sigaction", (void *)follow_sigaction);
    c_library_lead("signal", (void *)follow_signal);
    c_library_lead("__sysv_signal", (void *)follow_sysv_signal);
}

bool fault_handler_install(bool (*wanted)(uint64_t address, const void *state)) {
    struct sigaction ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER}, before;
    sigemptyset(&ours.sa_mask);
    meets = wanted;
    if (install(SIGSEGV, NULL, &before)) return false;
    show(&before);
    lead();
    process = getpid();
    return !install(SIGSEGV, &ours, NULL);
}

bool fault_handler_is_first(void) {
    struct sigaction now;
    return !install(SIGSEGV, NULL, &now) && now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle;
}

void fault_handler_remove(void) {
    process = 0;
    if (fault_handler_is_first()) install(SIGSEGV, programs(), NULL);
    c_library_lead("sigaction", NULL);
    c_library_lead("signal", NULL);
    c_library_lead("__sysv_signal", NULL);
}
