#include "ledger/unsimulated.h"

#include <stdio.h>

#include "ledger/ledger.h"
#include "ledger/refusals.h"
#include "ledger/stacks.h"
#include "machine/admission.h"

enum { SAID_MAX = 64 };

static const char *said[SAID_MAX];
static uint64_t last_call;  // that was told so, among all calls

bool unsimulated_is_new(const char *function) {
    for (unsigned i = 0; i < SAID_MAX; i++) {
        if (said[i] == function) return false;
        if (!said[i]) {
            said[i] = function;
            return true;
        }
    }
    return false;
}

enum status unsimulated(const char *function, const char *instead) {
    if (unsimulated_is_new(function)) fprintf(stderr, "quiesce: %s is not simulated; %s\n", function, instead);
    ledger_see((struct observation){
        .seen = SEEN_NOT_SIMULATED, .stack = stack_of_call(), .function = ledger_name(function)});
    refusal_note(REFUSAL_NOT_SIMULATED, function, NOT_SUPPORTED, NULL);
    last_call = admission_calls;
    return NOT_SUPPORTED;
}

bool unsimulated_in_call(void) { return last_call && last_call == admission_calls; }

bool unsimulated_was_called(void) { return said[0]; }

void unsimulated_open(void) {
    for (unsigned i = 0; i < SAID_MAX; i++) said[i] = NULL;
}
