#include "order/graph_launch.h"

#include "ledger/failure.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "order/capture.h"
#include "order/event.h"
#include "order/graph.h"
#include "order/graph_memory.h"
#include "order/graph_plan.h"
#include "order/guard.h"
#include "order/pieces.h"
#include "order/stream.h"
#include "order/transfer.h"

static void see(enum seen seen, const struct branch *branch, uint64_t object) {
    ledger_see((struct observation){.seen = (uint8_t)seen,
                                    .thing = THING_GRAPH_EXEC,
                                    .device = (uint16_t)branch->device,
                                    .stream = branch->serial,
                                    .object = object,
                                    .flags = FLAG_OF_GRAPH});
}

// -- one node --------------------------------------------------------------------------------------------------------

static enum status launch_nodes(struct graph *graph, struct stream *stream, const struct branch *branch);

static enum status launch_event(const struct work *node, struct stream *stream, const struct branch *branch) {
    ledger_on_behalf(node->stack, node->function);
    struct event *event = event_find(node->event);
    ledger_on_behalf(0, 0);
    if (!event) return INVALID_VALUE;
    return node->kind == WORK_RECORD ? event_record_on(event, stream, branch) : event_wait_on(event, stream, branch);
}

// Memory that a graph frees itself is the ledger's for as long as a launch has it.
static void see_memory(const struct work *node, const struct branch *branch) {
    struct graph_memory *memory = node->memory;
    memory->is_open = node->kind == WORK_ALLOCATE;
    if (!memory->freed_inside) return;
    ledger_see((struct observation){.seen = memory->is_open ? SEEN_ALLOCATED : SEEN_FREED,
                                    .thing = THING_DEVICE,
                                    .device = (uint16_t)memory->device,
                                    .stack = node->stack,
                                    .function = node->function,
                                    .flags = FLAG_ORDERED | (branch->node ? FLAG_OF_GRAPH : 0),
                                    .stream = branch->serial,
                                    .address = memory->address,
                                    .size_bytes = memory->size_bytes});
}

static enum status enqueue(const struct work *node, struct stream *stream, const struct branch *branch) {
    struct work work = *node;
    if (work.kind == WORK_LAUNCH) work.launch.number = ledger->ring_count;
    if ((work.kind == WORK_ALLOCATE || work.kind == WORK_END) && !stream->capture) see_memory(node, branch);
    if (work.kind == WORK_END && !work.memory->freed_inside && !stream->capture) {
        work.kind = WORK_FREE;
        enum status status = graph_memory_begin_free(node->memory, branch->serial, &work.freed);
        if (status) return status;
    }
    if (!stream->capture) {
        transfer_observe_on(branch, &work, false);
        // What it was captured with may have been freed since. That is seen; the launch itself does not look.
        ledger_on_behalf(node->stack, node->function);
        (void)transfer_check(&work, graph_memory_is_open);
        ledger_on_behalf(0, 0);
    }
    if (work.kind == WORK_LAUNCH) guard_launching(stream, work.launch.number);
    enum status status = stream_enqueue(stream, &work);
    guard_launching(NULL, 0);
    if (!status) guard_set(stream, &work);
    return status;
}

static enum status launch_node(const struct work *node, struct stream *stream, const struct branch *branch) {
    if (node->is_disabled) return OK;
    switch (node->kind) {
        case WORK_EMPTY: return OK;
        case WORK_CHILD:
            return stream->capture ? stream_enqueue(stream, node) : launch_nodes(node->child, stream, branch);
        case WORK_RECORD:
        case WORK_AWAIT:
            return stream->capture ? stream_enqueue(stream, node) : launch_event(node, stream, branch);
        default: return enqueue(node, stream, branch);
    }
}

// -- all of them -----------------------------------------------------------------------------------------------------

// Branches and marks have serials one behind another, those of branches first.
static uint64_t mark_of(const struct plan *plan, uint32_t mark) { return plan->serials + plan->branches + mark; }

static enum status launch_step(const struct plan *plan, const struct step *step, struct stream *stream,
                               const struct branch *first) {
    struct branch branch = *first;
    if (step->branch) branch = (struct branch){first->device, plan->serials + step->branch, NULL};
    if (step->begins && step->branch) see(SEEN_BRANCH_BEGAN, &branch, 0);
    for (uint32_t i = 0; i < step->waits_count; i++)
        see(SEEN_STREAM_WAITED, &branch, mark_of(plan, plan->waits[step->waits + i]));
    branch.node = step->node;
    enum status status = launch_node(step->node, stream, &branch);
    if (step->mark) see(SEEN_RECORDED, &branch, mark_of(plan, step->mark));
    return status;
}

static enum status launch_branches(struct plan *plan, struct stream *stream, const struct branch *first) {
    if (!plan->serials) plan->serials = ledger_serials(plan->branches + plan->marks + 1);
    enum status status = OK;
    see(SEEN_RECORDED, first, mark_of(plan, MARK_START));
    for (uint32_t i = 0; i < plan->count && !status; i++)
        status = launch_step(plan, &plan->steps[i], stream, first);
    for (uint32_t i = 1; i < plan->branches; i++) see(SEEN_STREAM_WAITED, first, mark_of(plan, plan->ends[i - 1]));
    return status;
}

static enum status launch_nodes(struct graph *graph, struct stream *stream, const struct branch *branch) {
    struct plan *plan = graph->plan;
    bool has_branches = plan->branches > 1 && !stream->capture;
    enum status status = has_branches ? launch_branches(plan, stream, branch) : OK;
    for (uint32_t i = 0; i < plan->count && !has_branches && !status; i++) {
        struct branch own = *branch;
        if (own.node) own.node = plan->steps[i].node;
        status = launch_node(plan->steps[i].node, stream, &own);
    }
    if (graph->held) {  // also of a launch that failed half way: some of its work may be under way
        struct work hold = {.kind = WORK_HOLD, .held = graph->held};
        enum status holds = stream->capture ? capture_hold(stream, graph->held) : stream_enqueue(stream, &hold);
        if (!status) status = holds;
    }
    return status;
}

static enum status begin_memory(const struct graph *graph, const struct stream *stream) {
    enum { FREES_ON_LAUNCH = 1 };  // cudaGraphInstantiateFlagAutoFreeOnLaunch, and HIP's
    enum status status = OK;
    for (struct work *work = graph->nodes.head; work && !status; work = work->next)
        if (work->kind == WORK_ALLOCATE)
            status = graph_memory_launch(work->memory, graph->flags & FREES_ON_LAUNCH,
                                         stream->capture ? NULL : &stream->serial);
    for (unsigned device = 0; device < DEVICES_MAX && !status; device++)
        status = graph_memory_fit(device, graph->plan->memory_bytes[device] - graph->plan->left_bytes[device]);
    for (struct work *work = graph->nodes.head; work; work = work->next)
        if (work->kind == WORK_ALLOCATE) graph_memory_launch_ended(work->memory, !status);
    return status;
}

// "Each launch is ordered behind both any previous work in this stream and any previous launches of this graphExec"
// (cudaGraphLaunch).
static enum status begin_behind_last(const struct graph *graph, struct stream *stream, const struct branch *branch) {
    if (!graph->launched || stream->capture || graph->launched_on == stream->serial) return OK;
    see(SEEN_STREAM_WAITED, branch, graph->launched_mark);
    uint64_t serial = graph->launched_on;
    guard_order(stream, &(struct stream){.device = graph->launched_device, .serial = serial, .legacy = !serial});
    return stream_wait(stream, graph->launched);
}

static enum status mark_end(struct graph *graph, struct stream *stream, const struct branch *branch) {
    if (stream->capture) return OK;
    struct point *point = stream_mark(stream);
    if (!point) return OUT_OF_MEMORY;
    point_drop(graph->launched);
    graph->launched = point;
    graph->launched_device = stream->device;
    graph->launched_on = stream->serial;
    if (!graph->launched_mark) graph->launched_mark = ledger_serials(1);
    see(SEEN_RECORDED, branch, graph->launched_mark);
    return OK;
}

enum status graph_launch(uint64_t executable, struct stream *stream) {
    struct graph *graph = handle_find(THING_GRAPH_EXEC, executable);
    if (!graph) return INVALID_VALUE;
    graph->references++;  // host functions may run without the lock: another thread may destroy it
    stream_keep(stream);
    struct branch branch = {stream->device, stream->serial, NULL};
    enum status status = failure_meet(CALL_LAUNCH);
    if (!status) status = begin_memory(graph, stream);
    if (!status) status = begin_behind_last(graph, stream, &branch);
    if (!status && !graph->nodes.head) status = stream_enqueue(stream, &(struct work){.kind = WORK_LAUNCH});
    if (!status) status = launch_nodes(graph, stream, &branch);
    if (!status) status = mark_end(graph, stream, &branch);
    stream_drop(stream);
    graph_drop(graph);
    return status;
}
