// The kinds of calls that can be made to fail, which the ledger counts.
#pragma once

enum call_kind {
    CALL_DEVICE,   // device memory, in every form
    CALL_PINNED,   // page-locked host memory, registering included
    CALL_MANAGED,
    CALL_STREAM,   // creating one
    CALL_EVENT,    // creating one
    CALL_GRAPH,    // instantiating one
    CALL_COPY,
    CALL_LAUNCH,
    CALL_SYNCHRONIZE,
    CALL_MEMORY,  // memory of whatever kind: counted beside its own
    CALL_KINDS,
};
