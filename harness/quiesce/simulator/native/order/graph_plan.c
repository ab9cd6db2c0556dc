#include "order/graph_plan.h"

#include <stdlib.h>

#include "order/graph_memory.h"
#include "order/graph_object.h"

// Nodes by their place in the graph's list, and the edges of each.
struct sorting {
    uint32_t *place;            // by number
    uint32_t *out, *out_first;  // the nodes behind each one: from out_first[place] on
    uint32_t *in, *in_first;
    uint32_t *left;   // how many of those before it are not sorted yet
    uint32_t *ready;  // none is left
    uint32_t *step;   // of each node
    uint32_t *tail;   // of each branch: its last node
    struct work **nodes;
};

static bool make_room(struct sorting *sorting, const struct graph *graph) {
    size_t nodes = graph->nodes.count, edges = graph->edges.count;
    uint32_t *room = calloc(graph->numbers + 1 + 2 * edges + 6 * nodes + 2, sizeof *room);
    sorting->nodes = calloc(nodes + 1, sizeof *sorting->nodes);
    sorting->place = room;
    if (!room || !sorting->nodes) return false;
    sorting->out = room + graph->numbers + 1;
    sorting->in = sorting->out + edges;
    sorting->out_first = sorting->in + edges;
    sorting->in_first = sorting->out_first + nodes + 1;
    sorting->left = sorting->in_first + nodes + 1;
    sorting->ready = sorting->left + nodes;
    sorting->step = sorting->ready + nodes;
    sorting->tail = sorting->step + nodes;
    return true;
}

static void give_room(struct sorting *sorting) {
    free(sorting->place);
    free(sorting->nodes);
}

// `first` counts the edges of each place, and is where those of the next one begin afterwards.
static void begin_lists(uint32_t *first, uint32_t count) {
    uint32_t before = 0;
    for (uint32_t i = 0; i <= count; i++) {
        uint32_t own = i < count ? first[i] : 0;
        first[i] = before;
        before += own;
    }
}

static void read_edges(struct sorting *sorting, const struct graph *graph) {
    uint32_t place = 0, count = graph->nodes.count;
    for (struct work *work = graph->nodes.head; work; work = work->next) {
        sorting->place[work->number] = place;
        sorting->nodes[place++] = work;
    }
    for (size_t i = 0; i < graph->edges.count; i++) {
        sorting->out_first[sorting->place[graph->edges.all[i].from]]++;
        sorting->in_first[sorting->place[graph->edges.all[i].to]]++;
        sorting->left[sorting->place[graph->edges.all[i].to]]++;
    }
    begin_lists(sorting->out_first, count);
    begin_lists(sorting->in_first, count);
    uint32_t *out_at = sorting->step, *in_at = sorting->tail;  // which hold nothing yet
    for (size_t i = 0; i < graph->edges.count; i++) {
        uint32_t from = sorting->place[graph->edges.all[i].from], to = sorting->place[graph->edges.all[i].to];
        sorting->out[sorting->out_first[from] + out_at[from]++] = to;
        sorting->in[sorting->in_first[to] + in_at[to]++] = from;
    }
}

static int urgency(const struct work *node) { return node->kind == WORK_END ? 2 : node->kind != WORK_ALLOCATE; }

static uint32_t take_ready(struct sorting *sorting, uint32_t *ready_count) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < *ready_count; i++) {
        uint32_t one = sorting->ready[i], other = sorting->ready[best];
        int more = urgency(sorting->nodes[one]) - urgency(sorting->nodes[other]);
        if (more > 0 || (!more && one < other)) best = i;
    }
    uint32_t taken = sorting->ready[best];
    sorting->ready[best] = sorting->ready[--*ready_count];
    return taken;
}

static enum status sort(struct sorting *sorting, struct plan *plan, uint32_t count) {
    uint32_t ready_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!sorting->left[i]) sorting->ready[ready_count++] = i;
    while (ready_count) {
        uint32_t place = take_ready(sorting, &ready_count);
        sorting->step[place] = plan->count;
        plan->steps[plan->count++] = (struct step){.node = sorting->nodes[place]};
        for (uint32_t i = sorting->out_first[place]; i < sorting->out_first[place + 1]; i++)
            if (!--sorting->left[sorting->out[i]]) sorting->ready[ready_count++] = sorting->out[i];
    }
    return plan->count == count ? OK : INVALID_VALUE;
}

static uint32_t mark_behind(struct plan *plan, struct step *step) {
    if (!step->mark) step->mark = ++plan->marks;
    return step->mark;
}

// The branch that a step carries on: that of one before it which nobody carried on, the first of them.
static void choose_branch(const struct sorting *sorting, struct plan *plan, uint32_t place, struct step *step) {
    uint32_t begin = sorting->in_first[place], end = sorting->in_first[place + 1];
    bool is_first = step == plan->steps;
    step->branch = is_first ? 0 : plan->branches;
    for (uint32_t i = begin; i < end; i++) {
        uint32_t branch = plan->steps[sorting->step[sorting->in[i]]].branch;
        if (sorting->tail[branch] == sorting->in[i] && branch < step->branch) step->branch = branch;
    }
    step->begins = step->branch == plan->branches;
    if (step->begins) plan->branches++;
}

static void divide(struct sorting *sorting, struct plan *plan) {
    uint32_t waits = 0;
    plan->marks = MARK_START;
    for (uint32_t at = 0; at < plan->count; at++) {
        struct step *step = &plan->steps[at];
        uint32_t place = sorting->place[step->node->number];
        choose_branch(sorting, plan, place, step);
        step->waits = waits;
        for (uint32_t i = sorting->in_first[place]; i < sorting->in_first[place + 1]; i++) {
            uint32_t before = sorting->in[i];
            bool carries_on = !step->begins && sorting->tail[step->branch] == before;
            if (!carries_on) plan->waits[waits++] = mark_behind(plan, &plan->steps[sorting->step[before]]);
        }
        bool is_root = sorting->in_first[place] == sorting->in_first[place + 1];
        if (is_root && step->branch) plan->waits[waits++] = MARK_START;
        step->waits_count = waits - step->waits;
        sorting->tail[step->branch] = place;
    }
    for (uint32_t i = 1; i < plan->branches; i++)
        plan->ends[i - 1] = mark_behind(plan, &plan->steps[sorting->step[sorting->tail[i]]]);
}

// -- memory ----------------------------------------------------------------------------------------------------------

// What comes before a place: everything from which edges lead to it. The plan's order is one of the edges'.
static void find_before(const struct sorting *sorting, const struct plan *plan, uint32_t place, bool *is_before) {
    for (uint32_t i = 0; i < plan->count; i++) is_before[i] = i == place;
    for (uint32_t at = sorting->step[place] + 1; at-- > 0;) {
        uint32_t each = sorting->place[plan->steps[at].node->number];
        for (uint32_t i = sorting->in_first[each]; is_before[each] && i < sorting->in_first[each + 1]; i++)
            is_before[sorting->in[i]] = true;
    }
}

// An allocation takes what was freed before it, and the rest anew. Freed before it is what edges put there (CUDA
// Programming Guide, "Optimized Memory Reuse"): branches that no edge orders need memory of their own,
// NVIDIA/warp#1157.
static bool measure_memory(const struct sorting *sorting, struct plan *plan) {
    bool *is_before = calloc(plan->count + 1, sizeof *is_before);
    uint64_t *freed = calloc(plan->count + 1, sizeof *freed);  // and not taken yet, by place
    for (uint32_t at = 0; is_before && freed && at < plan->count; at++) {
        const struct work *node = plan->steps[at].node;
        uint32_t place = sorting->place[node->number];
        if (node->kind == WORK_END && node->memory->freed_inside) freed[place] = node->memory->size_bytes;
        if (node->kind != WORK_ALLOCATE) continue;
        uint64_t missing = node->memory->size_bytes;
        unsigned device = node->memory->device;
        if (!node->memory->freed_inside) plan->left_bytes[device] += missing;
        find_before(sorting, plan, place, is_before);
        for (uint32_t i = 0; i < plan->count && missing; i++) {
            if (!is_before[i] || !freed[i] || sorting->nodes[i]->memory->device != device) continue;
            uint64_t taken = freed[i] < missing ? freed[i] : missing;
            freed[i] -= taken;
            missing -= taken;
        }
        plan->memory_bytes[device] += missing;
    }
    bool has_room = is_before && freed;
    free(is_before);
    free(freed);
    return has_room;
}

static enum status plan_nodes(const struct graph *graph, struct plan *plan) {
    uint32_t count = graph->nodes.count;
    struct sorting sorting = {0};
    plan->steps = calloc(count + 1, sizeof *plan->steps);
    plan->waits = calloc(graph->edges.count + count + 1, sizeof *plan->waits);
    plan->ends = calloc(count + 1, sizeof *plan->ends);
    bool has_room = plan->steps && plan->waits && plan->ends && make_room(&sorting, graph);
    enum status status = has_room ? OK : OUT_OF_MEMORY;
    if (!status) {
        read_edges(&sorting, graph);
        status = sort(&sorting, plan, count);
    }
    if (!status && !measure_memory(&sorting, plan)) status = OUT_OF_MEMORY;
    if (!status) divide(&sorting, plan);
    give_room(&sorting);
    return status;
}

enum status plan_make(struct graph *graph) {
    graph->plan = calloc(1, sizeof *graph->plan);
    enum status status = graph->plan ? plan_nodes(graph, graph->plan) : OUT_OF_MEMORY;
    return status ? status : plan_children(&graph->nodes);
}

enum status plan_children(const struct nodes *nodes) {
    enum status status = OK;
    for (const struct work *work = nodes->head; work && !status; work = work->next)
        if (work->kind == WORK_CHILD) status = plan_make(work->child);
    return status;
}

void plan_delete(struct plan *plan) {
    if (!plan) return;
    free(plan->steps);
    free(plan->waits);
    free(plan->ends);
    free(plan);
}
