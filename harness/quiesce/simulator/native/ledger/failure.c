#include "ledger/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger.h"
#include "ledger/refusals.h"
#include "machine/admission.h"
#include "machine/random.h"

static const char *const KINDS[CALL_KINDS] = {
    [CALL_DEVICE] = "device", [CALL_PINNED] = "pinned", [CALL_MANAGED] = "managed",
    [CALL_STREAM] = "stream", [CALL_EVENT] = "event",   [CALL_GRAPH] = "graph",
    [CALL_COPY] = "copy",     [CALL_LAUNCH] = "launch", [CALL_SYNCHRONIZE] = "synchronize",
    [CALL_MEMORY] = "memory",
};

static struct arming {
    enum { OFF, ONCE, FROM, BY_CHANCE } how;
    uint64_t left;     // calls up to the first that fails
    uint64_t percent;
    int answer;
} armed[CALL_KINDS];
static uint64_t dice;
static uint64_t last_call;  // that failed so, among all calls

static int usual_answer(unsigned kind) {
    switch (kind) {
        case CALL_COPY:
        case CALL_LAUNCH:
        case CALL_SYNCHRONIZE: return UNKNOWN;
        default: return OUT_OF_MEMORY;
    }
}

// Returns what comes behind the first arming of a text, or NULL.
static const char *parse_one(const char *text, unsigned *found, struct arming *parsed) {
    enum { ANSWER_MAX = 99999 };
    unsigned kind = 0;
    const char *colon = strchr(text, ':');
    if (!colon) return NULL;
    size_t length = (size_t)(colon - text);
    while (kind < CALL_KINDS && (strlen(KINDS[kind]) != length || memcmp(text, KINDS[kind], length))) kind++;
    if (kind == CALL_KINDS || colon[1] < '0' || colon[1] > '9') return NULL;
    char *end;
    uint64_t number = strtoull(colon + 1, &end, 10);
    struct arming arming = {ONCE, number, 0, usual_answer(kind)};
    if (*end == '+') arming.how = FROM, end++;
    else if (*end == '%') arming = (struct arming){BY_CHANCE, 0, number, arming.answer}, end++;
    if (arming.how == BY_CHANCE ? number > 100 : number == 0) return NULL;
    if (*end == '=') {
        if (end[1] < '0' || end[1] > '9') return NULL;
        long answer = strtol(end + 1, &end, 10);
        if (answer < 1 || answer > ANSWER_MAX) return NULL;
        arming.answer = (int)answer;
    }
    *found = kind;
    *parsed = arming;
    return end;
}

static const char *explain(const char *wrong) {
    enum { SHOWN_MAX = 100 };
    static char text[512];
    size_t shown = strcspn(wrong, ",");
    size_t length = (size_t)snprintf(text, sizeof text,
                                     "'fail' can't be '%.*s': write KIND:N, KIND:N+ or KIND:P%%, then =CODE; N and "
                                     "CODE count from 1; KIND is one of",
                                     shown < SHOWN_MAX ? (int)shown : SHOWN_MAX, wrong);
    for (unsigned kind = 0; kind < CALL_KINDS; kind++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s %s", kind ? "," : "", KINDS[kind]);
    return text;
}

const char *failure_check(const char *text) {
    unsigned kind;
    struct arming arming;
    while (*text) {
        const char *begin = text;
        text = parse_one(text, &kind, &arming);
        if (!text || (*text && *text++ != ',')) return explain(begin);
    }
    return NULL;
}

const char *failure_arm(const char *text, uint64_t seed) {
    memset(armed, 0, sizeof armed);
    dice = seed;
    const char *wrong = failure_check(text);
    if (wrong) return wrong;
    while (*text) {
        unsigned kind;
        struct arming arming;
        text = parse_one(text, &kind, &arming);
        armed[kind] = arming;
        if (*text) text++;
    }
    return NULL;
}

void failure_arm_one(enum call_kind kind, uint64_t nth, int answer) {
    armed[kind] = (struct arming){ONCE, nth, 0, answer};
}

static enum status answer_of(struct arming *arming) {
    switch (arming->how) {
        case OFF: return OK;
        case BY_CHANCE: return random_next(&dice) % 100 < arming->percent ? (enum status)arming->answer : OK;
        case ONCE:
        case FROM: break;
    }
    if (arming->left > 1) {
        arming->left--;
        return OK;
    }
    if (arming->how == ONCE) arming->how = OFF;
    return (enum status)arming->answer;
}

static enum status meet(enum call_kind kind) {
    enum status answer = answer_of(&armed[kind]);
    ledger->met[kind].calls++;
    if (answer) ledger->met[kind].failed++;
    return answer;
}

enum status failure_meet(enum call_kind kind) {
    enum status status = meet(kind);
    if (kind == CALL_DEVICE || kind == CALL_PINNED || kind == CALL_MANAGED) {
        enum status of_any_kind = meet(CALL_MEMORY);
        if (!status) status = of_any_kind;
    }
    if (status) {
        last_call = admission_calls;
        refusal_note(REFUSAL_ARMED, ledger_entered(), status, NULL);
    }
    return status;
}

bool failure_in_call(void) { return last_call && last_call == admission_calls; }
