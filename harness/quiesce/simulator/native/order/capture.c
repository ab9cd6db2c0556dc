#include "order/capture.h"

#include <pthread.h>
#include <stdlib.h>

#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/settings.h"
#include "order/graph.h"
#include "order/pieces.h"

struct capture {
    unsigned references;  // its activity, and each event that was recorded in it
    struct capture *next;
    struct stream *origin;
    enum capture_mode mode;
    pthread_t thread;
    bool active, invalid;
    bool has_graph;  // it was there before, and stays whose it is
    struct stream *members[MEMBERS_MAX];  // NULL: it is gone, or nodes that a client named are in its place
    unsigned count;
    struct progress before[MEMBERS_MAX];  // what each member captures next
    struct graph *graph;                  // NULL: it ended
    const void **dependencies;            // room for MEMBERS_MAX, once somebody has asked
};

static struct capture *active;
static _Thread_local enum capture_mode thread_mode;

static enum status refuse(struct capture *capture, enum status status) {
    capture->invalid = true;
    return status;
}

static unsigned member_of(const struct capture *capture, const struct stream *stream) {
    unsigned i = 0;
    while (i < capture->count && capture->members[i] != stream) i++;
    return i;
}

struct capture *capture_keep(struct capture *capture) {
    capture->references++;
    return capture;
}

void capture_drop(struct capture *capture) {
    if (--capture->references) return;
    free(capture);
}

// -- beginning and end -----------------------------------------------------------------------------------------------

// The reference to the graph becomes the capture's.
static enum status begin(struct stream *stream, enum capture_mode mode, struct graph *graph) {
    struct capture *capture = graph ? calloc(1, sizeof *capture) : NULL;
    if (!capture) return OUT_OF_MEMORY;
    capture->references = 1;
    capture->graph = graph;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->active = true;
    capture->members[capture->count++] = stream;
    capture->next = active;
    active = capture;
    stream->capture = capture;
    return OK;
}

static void abandon(struct capture *capture);

static enum status may_begin(const struct stream *stream) {
    return stream->legacy ? CAPTURE_UNSUPPORTED : stream->capture ? ILLEGAL_STATE : OK;
}

enum status capture_begin(struct stream *stream, enum capture_mode mode) {
    enum status status = may_begin(stream);
    if (status) return status;
    struct graph *graph = graph_begin();
    status = begin(stream, mode, graph);
    if (status && graph) graph_drop(graph);
    return status;
}

enum status capture_begin_into(struct stream *stream, enum capture_mode mode, uint64_t handle, void *const *nodes,
                               uint64_t count) {
    struct graph *graph = handle_find(THING_GRAPH, handle);
    enum status status = graph ? may_begin(stream) : INVALID_VALUE;
    for (uint64_t i = 0; i < count && !status; i++)
        if (!graph_has(graph, nodes[i])) status = INVALID_VALUE;
    if (!status) status = begin(stream, mode, graph);
    if (status) return status;
    graph->references++;
    stream->capture->has_graph = true;
    status = capture_depend(stream, nodes, count, true);
    if (status) abandon(stream->capture);
    return status;
}

// The streams leave it; its graph is the caller's.
static struct graph *close_capture(struct capture *capture) {
    struct capture **place = &active;
    while (*place != capture) place = &(*place)->next;
    *place = capture->next;
    for (unsigned i = 0; i < capture->count; i++)
        if (capture->members[i]) capture->members[i]->capture = NULL;
    capture->active = false;
    free(capture->dependencies);
    capture->dependencies = NULL;
    struct graph *graph = capture->graph;
    capture->graph = NULL;
    return graph;
}

// Whether the origin comes behind all captured work; a fork that did nothing leaves nothing to join.
static bool is_joined(const struct capture *capture) {
    for (unsigned i = 0; i < capture->count; i++)
        if (capture->before[0].known[i] < capture->before[i].known[i]) return false;
    return true;
}

enum status capture_end(struct stream *stream, uint64_t *made) {
    struct capture *capture = stream->capture;
    if (!capture) return ILLEGAL_STATE;
    if (capture->origin != stream) return CAPTURE_UNMATCHED;
    if (capture->mode != CAPTURE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return CAPTURE_WRONG_THREAD;
    struct graph *graph = close_capture(capture);
    enum status status = capture->invalid ? CAPTURE_INVALIDATED : is_joined(capture) ? OK : CAPTURE_UNJOINED;
    bool had_graph = capture->has_graph;
    capture_drop(capture);
    if (!status && !had_graph) return graph_end(graph, made);
    if (!status) status = graph_show(graph, made);
    graph_drop(graph);
    return status;
}

static void abandon(struct capture *capture) {
    graph_drop(close_capture(capture));
    capture_drop(capture);
}

void capture_leave(struct stream *stream) {
    struct capture *capture = stream->capture;
    if (!capture) return;
    if (capture->origin == stream)
        abandon(capture);
    else
        capture->members[member_of(capture, stream)] = NULL;
}

void captures_close(void) {
    while (active) abandon(active);
    graphs_close();
}

enum capture_state capture_state(const struct stream *stream, uint64_t *identifier) {
    const struct capture *capture = stream->capture;
    *identifier = capture ? capture->graph->identifier : 0;
    return !capture ? CAPTURE_NONE : capture->invalid ? CAPTURE_INVALID : CAPTURE_ACTIVE;
}

enum capture_mode capture_exchange_mode(enum capture_mode mode) {
    enum capture_mode before = thread_mode;
    thread_mode = mode;
    return before;
}

struct stream *capture_into(struct graph *graph, unsigned device) {
    static struct stream stream;
    static struct capture capture;
    capture = (struct capture){.references = 1, .graph = graph, .active = true, .members = {&stream}, .count = 1};
    stream = (struct stream){
        .references = 1, .alive = true, .nonblocking = true, .device = device, .capture = &capture};
    stream.tail = &stream.head;
    return &stream;
}

// -- what is recorded ------------------------------------------------------------------------------------------------

enum status capture_add(struct stream *stream, const struct work *work) {
    struct capture *capture = stream->capture;
    if (capture->invalid) return CAPTURE_INVALIDATED;
    struct work *made = work_new(work);
    if (!made) return OUT_OF_MEMORY;
    made->stack = stack_of_call();
    made->function = ledger_function();
    uint32_t number = capture->graph->numbers + 1;  // that it will have
    unsigned member = member_of(capture, stream);
    struct progress *progress = &capture->before[member];
    for (unsigned i = 0; i < capture->count; i++) {
        struct edge edge = {progress->known[i], number};
        if (progress->frontier >> i & 1 && !edges_add(&capture->graph->edges, edge)) {
            work_delete(made);
            return OUT_OF_MEMORY;
        }
    }
    graph_append(capture->graph, made);
    progress->known[member] = number;
    progress->frontier = 1ull << member;
    return OK;
}

enum status capture_hold(struct stream *stream, const struct user_objects *held) {
    return graph_hold(stream->capture->graph, held);
}

enum status capture_progress(struct stream *stream, struct progress **progress) {
    struct capture *capture = stream->capture;
    if (capture->invalid) return CAPTURE_INVALIDATED;
    *progress = malloc(sizeof **progress);
    if (!*progress) return OUT_OF_MEMORY;
    **progress = capture->before[member_of(capture, stream)];
    return OK;
}

enum status capture_graph(const struct stream *stream, uint64_t *graph) {
    return graph_show(stream->capture->graph, graph);
}

enum status capture_dependencies(const struct stream *stream, const void ***nodes, uint64_t *count) {
    struct capture *capture = stream->capture;
    if (!capture->dependencies) capture->dependencies = calloc(MEMBERS_MAX, sizeof *capture->dependencies);
    if (!capture->dependencies) return OUT_OF_MEMORY;
    uint64_t graph;  // its nodes are known to the client from now on, whether it asks for the graph or not
    enum status status = graph_show(capture->graph, &graph);
    if (status) return status;
    const struct progress *before = &capture->before[member_of(capture, stream)];
    *nodes = capture->dependencies;
    *count = 0;
    for (unsigned i = 0; i < capture->count; i++)
        if (before->frontier >> i & 1) capture->dependencies[(*count)++] = graph_node(capture->graph, before->known[i]);
    return OK;
}

// The place of a node that a client names: one that no stream's next node depends on, or a new one.
static unsigned place_of_node(struct capture *capture, uint32_t number) {
    uint64_t used = 0;
    for (unsigned i = 0; i < capture->count; i++) {
        used |= capture->before[i].frontier;
        for (unsigned j = 0; j < capture->count; j++)
            if (capture->before[i].frontier >> j & 1 && capture->before[i].known[j] == number) return j;
    }
    unsigned place = 0;
    while (place < capture->count && (capture->members[place] || used >> place & 1)) place++;
    if (place == capture->count && place < MEMBERS_MAX) capture->members[capture->count++] = NULL;
    return place;
}

enum status capture_depend(struct stream *stream, void *const *nodes, uint64_t count, bool alone) {
    struct capture *capture = stream->capture;
    if (!capture) return ILLEGAL_STATE;
    if (capture->invalid) return CAPTURE_INVALIDATED;
    for (uint64_t i = 0; i < count; i++)
        if (!graph_has(capture->graph, nodes[i])) return INVALID_VALUE;
    struct progress *own = &capture->before[member_of(capture, stream)];
    if (alone) own->frontier = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t number = ((const struct work *)nodes[i])->number;
        unsigned place = place_of_node(capture, number);
        if (place == MEMBERS_MAX) return refuse(capture, NOT_SUPPORTED);
        own->known[place] = number;
        own->frontier |= 1ull << place;
    }
    return OK;
}

// What is new to the stream comes in as the event has it; what both know equally well depends if either says so.
static void learn(struct progress *own, const struct progress *other) {
    for (unsigned j = 0; j < MEMBERS_MAX; j++) {
        uint64_t bit = 1ull << j;
        if (other->known[j] > own->known[j]) own->frontier &= ~bit;
        if (other->known[j] >= own->known[j]) own->frontier |= other->frontier & bit;
        if (other->known[j] > own->known[j]) own->known[j] = other->known[j];
    }
}

static enum status join(struct capture *capture, struct stream *stream, const struct progress *progress) {
    unsigned i = member_of(capture, stream);
    if (i == MEMBERS_MAX) return refuse(capture, NOT_SUPPORTED);
    if (i == capture->count) capture->members[capture->count++] = stream;
    stream->capture = capture;
    learn(&capture->before[i], progress);
    return OK;
}

enum status capture_wait(struct stream *stream, const struct event *event) {
    if (stream->capture && stream->capture->invalid) return CAPTURE_INVALIDATED;
    struct capture *capture = event->capture;
    if (!capture) return stream->capture && event->point ? refuse(stream->capture, CAPTURE_ISOLATION) : OK;
    if (!capture->active) return INVALID_VALUE;  // as capture_forbid_event
    if (stream->capture && stream->capture != capture) {
        stream->capture->invalid = true;
        return refuse(capture, CAPTURE_MERGE);
    }
    if (capture->invalid) return INVALID_VALUE;  // "an idle waiter on an invalidated capture", ROCm/rocm-systems#11589
    if (stream->legacy) return refuse(capture, CAPTURE_IMPLICIT);
    return join(capture, stream, event->progress);
}

// -- what is forbidden -----------------------------------------------------------------------------------------------

static bool has_member_on(const struct capture *capture, unsigned device, bool blocking_only) {
    for (unsigned i = 0; i < capture->count; i++) {
        const struct stream *member = capture->members[i];
        if (member && member->device == device && !(blocking_only && member->nonblocking)) return true;
    }
    return false;
}

enum status capture_forbid_unsafe(void) {
    if (thread_mode == CAPTURE_RELAXED) return OK;
    enum status status = OK;
    for (struct capture *capture = active; capture; capture = capture->next) {
        bool mine = pthread_equal(capture->thread, pthread_self());
        bool concerns = mine ? capture->mode != CAPTURE_RELAXED
                             : capture->mode == CAPTURE_GLOBAL && thread_mode == CAPTURE_GLOBAL;
        if (concerns) status = refuse(capture, CAPTURE_UNSUPPORTED);
    }
    return status;
}

enum status capture_forbid_beside(void) {
    return settings.flavour == FLAVOUR_CUDA ? capture_forbid_unsafe() : OK;
}

enum status capture_forbid_on(struct stream *stream) {
    return stream->capture ? refuse(stream->capture, CAPTURE_UNSUPPORTED) : OK;
}

enum status capture_forbid_default(unsigned device) {
    enum status status = OK;
    for (struct capture *capture = active; capture; capture = capture->next)
        if (has_member_on(capture, device, true)) status = refuse(capture, CAPTURE_IMPLICIT);
    return status;
}

enum status capture_forbid_device(unsigned device) {
    enum status status = OK;
    for (struct capture *capture = active; capture; capture = capture->next)
        if (has_member_on(capture, device, false)) status = refuse(capture, CAPTURE_UNSUPPORTED);
    return status;
}

enum status capture_forbid_event(const struct event *event) {
    if (!event->capture) return OK;
    return event->capture->active ? refuse(event->capture, CAPTURED_EVENT) : INVALID_VALUE;  // as CUDA 13's driver
}
