// In which order an executable graph does its work, and what of it nothing orders.
//
// The work of a launch goes to one stream, in an order that the edges allow, and of these the one that shows most: what
// frees memory comes as early, and what allocates it as late as it may. To the judge of races a launch is branches: of
// two nodes that follow each other one may carry on the branch of the other, and everything else waits for a mark. The
// first branch is the stream itself.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/settings.h"
#include "machine/status.h"

struct graph;
struct nodes;
struct work;

enum { MARK_NONE, MARK_START };  // the latter is before the first work of the launch

struct step {
    struct work *node;
    uint32_t branch;
    bool begins;                   // its branch
    uint32_t mark;                 // behind it, or MARK_NONE
    uint32_t waits, waits_count;  // for which marks, in plan->waits
};

struct plan {
    struct step *steps;
    uint32_t count, branches, marks;  // marks: the last one
    uint32_t *waits;
    uint32_t *ends;    // the marks at the ends of the branches, but for the first
    uint64_t memory_bytes[DEVICES_MAX];  // that its allocations need at once, with those that it leaves
    uint64_t left_bytes[DEVICES_MAX];    // of those that it leaves
    uint64_t serials;  // the first of those that the ledger has for branches and marks; 0: none yet
};

// For a graph that is to be executed, and those inside its nodes. INVALID_VALUE: edges form a circle.
enum status plan_make(struct graph *graph);
enum status plan_children(const struct nodes *nodes);
void plan_delete(struct plan *plan);  // NULL: nothing happens
