#include "kernels/fault.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/watch.h"
#include "order/guard.h"

enum { SIGNALS = 2, STACK_BYTES = 64 << 10 };
static const int NUMBERS[SIGNALS] = {SIGSEGV, SIGBUS};

static struct sigaction before[SIGNALS];
static stack_t stack_before;
static char stack[STACK_BYTES];  // a kernel without end that calls itself has used up the thread's own
static _Thread_local volatile bool runs, is_beside;
static _Thread_local uint64_t address;
static volatile bool stops;

uint64_t fault_address(void) { return address; }

// What the client does about a signal that is none of a kernel.
static void pass_on(int number, siginfo_t *about, void *state) {
    const struct sigaction *own = &before[number == NUMBERS[0] ? 0 : 1];
    if (own->sa_flags & SA_SIGINFO)
        own->sa_sigaction(number, about, state);
    else if (own->sa_handler != SIG_DFL && own->sa_handler != SIG_IGN)
        own->sa_handler(number);
    else
        sigaction(number, own, NULL);  // the access is tried again, and ends the process
}

static void meet(int number, siginfo_t *about, void *state) {
    bool is_fault = about->si_code > 0;  // else somebody sent it
    if (is_beside && !is_fault && stops) {
        if (runs) watch_interrupt();
        return;
    }
    if (is_fault && !is_beside && guard_meet((uint64_t)about->si_addr, state)) return;
    if (!runs || !is_fault) {
        pass_on(number, about, state);
        return;
    }
    address = (uint64_t)about->si_addr;
    watch_leave(ENDED_BY_ADDRESS);
}

void fault_begin(void) {
    struct sigaction meeting = {.sa_sigaction = meet, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    sigemptyset(&meeting.sa_mask);
    if (sigaltstack(&own, &stack_before)) stack_before = (stack_t){.ss_flags = SS_DISABLE};
    runs = true;
    for (unsigned i = 0; i < SIGNALS; i++) sigaction(NUMBERS[i], &meeting, &before[i]);
}

void fault_end(void) {
    for (unsigned i = 0; i < SIGNALS; i++) sigaction(NUMBERS[i], &before[i], NULL);
    runs = false;
    sigaltstack(&stack_before, NULL);
}

void fault_begin_beside(char *own, size_t bytes) {
    is_beside = true;
    sigaltstack(&(stack_t){.ss_sp = own, .ss_size = bytes}, NULL);
}

void fault_run_beside(bool run) { runs = run; }

void fault_stop_beside(bool stop) { stops = stop; }
