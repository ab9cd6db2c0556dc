#include "order/graph_launch.h"

#include "ledger/failure.h"
#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "order/capture.h"
#include "order/graph.h"
#include "order/graph_memory.h"
#include "order/stream.h"
#include "order/transfer.h"

enum status graph_launch(uint64_t executable, struct stream *stream) {
    struct graph *graph = handle_find(THING_GRAPH_EXEC, executable);
    if (!graph) return INVALID_VALUE;
    graph->references++;  // host functions may run without the lock: another thread may destroy it
    stream_keep(stream);
    enum status status = failure_meet(CALL_LAUNCH);
    for (struct work *work = graph->nodes.head; work && !status; work = work->next) {
        if (work->kind != WORK_ALLOCATE) continue;
        status = graph_memory_launch(work->memory, graph->frees_on_launch, stream->capture ? NULL : &stream->serial);
    }
    for (struct work *work = graph->nodes.head; work; work = work->next)
        if (work->kind == WORK_ALLOCATE) graph_memory_launch_ended(work->memory, !status);
    if (!status && !graph->nodes.head) status = stream_enqueue(stream, &(struct work){.kind = WORK_LAUNCH});
    for (const struct work *node = graph->nodes.head; node && !status; node = node->next) {
        struct work work = *node;
        if (work.kind == WORK_LAUNCH) work.launch.number = ledger->ring_count;
        if (work.kind == WORK_END && !work.memory->freed_inside && !stream->capture) {
            work.kind = WORK_FREE;
            status = graph_memory_begin_free(node->memory, stream->serial, &work.freed);
            if (status) break;
        }
        if (!stream->capture) {
            transfer_observe(stream, &work, false);
            // What it was captured with may have been freed since. That is seen; the launch itself does not look.
            (void)transfer_check(&work, graph_memory_covers);
        }
        status = stream_enqueue(stream, &work);
    }
    if (graph->held) {  // also of a launch that failed half way: some of its work may be under way
        struct work hold = {.kind = WORK_HOLD, .held = graph->held};
        enum status holds = stream->capture ? capture_hold(stream, graph->held) : stream_enqueue(stream, &hold);
        if (!status) status = holds;
    }
    stream_drop(stream);
    graph_drop(graph);
    return status;
}
