#include "capture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "stream.h"

enum { MEMBERS_MAX = 64 };

struct capture {
    unsigned references;  // its activity, and each event that was recorded in it
    uint64_t identifier;
    struct capture *next;
    struct stream *origin;
    enum capture_mode mode;
    pthread_t thread;
    bool active, invalid;
    struct stream *members[MEMBERS_MAX];
    unsigned count;
    // known[i][j]: how much of what member j captured comes before what member i captures next.
    uint32_t known[MEMBERS_MAX][MEMBERS_MAX];
    struct nodes nodes;
};

static struct capture *active;
static uint64_t identifiers;
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
    nodes_delete(&capture->nodes);
    free(capture);
}

void nodes_delete(struct nodes *nodes) {
    while (nodes->head) {
        struct work *next = nodes->head->next;
        work_delete(nodes->head);
        nodes->head = next;
    }
    nodes->tail = &nodes->head;
    nodes->count = 0;
}

// -- beginning and end -----------------------------------------------------------------------------------------------

enum status capture_begin(struct stream *stream, enum capture_mode mode) {
    if (stream->legacy) return CAPTURE_UNSUPPORTED;
    if (stream->capture) return ILLEGAL_STATE;
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture) return OUT_OF_MEMORY;
    capture->references = 1;
    capture->identifier = ++identifiers;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->active = true;
    capture->members[capture->count++] = stream;
    capture->nodes.tail = &capture->nodes.head;
    capture->next = active;
    active = capture;
    stream->capture = capture;
    return OK;
}

static void close_capture(struct capture *capture) {
    struct capture **place = &active;
    while (*place != capture) place = &(*place)->next;
    *place = capture->next;
    for (unsigned i = 0; i < capture->count; i++) capture->members[i]->capture = NULL;
    capture->active = false;
}

// Whether the origin comes behind all captured work; a fork that did nothing leaves nothing to join.
static bool is_joined(const struct capture *capture) {
    for (unsigned i = 0; i < capture->count; i++)
        if (capture->known[0][i] < capture->known[i][i]) return false;
    return true;
}

enum status capture_end(struct stream *stream, struct nodes *nodes) {
    struct capture *capture = stream->capture;
    if (!capture) return ILLEGAL_STATE;
    if (capture->origin != stream) return CAPTURE_UNMATCHED;
    if (capture->mode != CAPTURE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return CAPTURE_WRONG_THREAD;
    close_capture(capture);
    enum status status = capture->invalid ? CAPTURE_INVALIDATED : is_joined(capture) ? OK : CAPTURE_UNJOINED;
    if (!status) {
        *nodes = capture->nodes;
        if (!nodes->head) nodes->tail = &nodes->head;
        capture->nodes.head = NULL;
    }
    capture_drop(capture);
    return status;
}

void capture_abandon(struct stream *stream) {
    struct capture *capture = stream->capture;
    if (!capture) return;
    close_capture(capture);
    capture_drop(capture);
}

void captures_close(void) {
    while (active) capture_abandon(active->origin);
    identifiers = 0;
}

enum capture_state capture_state(const struct stream *stream, uint64_t *identifier) {
    const struct capture *capture = stream->capture;
    *identifier = capture ? capture->identifier : 0;
    return !capture ? CAPTURE_NONE : capture->invalid ? CAPTURE_INVALID : CAPTURE_ACTIVE;
}

enum capture_mode capture_exchange_mode(enum capture_mode mode) {
    enum capture_mode before = thread_mode;
    thread_mode = mode;
    return before;
}

// -- what is recorded ------------------------------------------------------------------------------------------------

enum status capture_add(struct stream *stream, const struct work *work) {
    struct capture *capture = stream->capture;
    if (capture->invalid) return CAPTURE_INVALIDATED;
    struct work *made = work_new(work);
    if (!made) return OUT_OF_MEMORY;
    *capture->nodes.tail = made;
    capture->nodes.tail = &made->next;
    capture->nodes.count++;
    unsigned i = member_of(capture, stream);
    capture->known[i][i]++;
    return OK;
}

enum status capture_progress(struct stream *stream, uint32_t **progress) {
    struct capture *capture = stream->capture;
    if (capture->invalid) return CAPTURE_INVALIDATED;
    *progress = malloc(sizeof capture->known[0]);
    if (!*progress) return OUT_OF_MEMORY;
    memcpy(*progress, capture->known[member_of(capture, stream)], sizeof capture->known[0]);
    return OK;
}

static enum status join(struct capture *capture, struct stream *stream, const uint32_t *progress) {
    unsigned i = member_of(capture, stream);
    if (i == MEMBERS_MAX) return refuse(capture, NOT_SUPPORTED);
    if (i == capture->count) capture->members[capture->count++] = stream;
    stream->capture = capture;
    for (unsigned j = 0; j < MEMBERS_MAX; j++)
        if (progress[j] > capture->known[i][j]) capture->known[i][j] = progress[j];
    return OK;
}

enum status capture_wait(struct stream *stream, const struct event *event) {
    if (stream->capture && stream->capture->invalid) return CAPTURE_INVALIDATED;
    struct capture *capture = event->capture;
    if (!capture) return stream->capture && event->point ? refuse(stream->capture, CAPTURE_ISOLATION) : OK;
    if (!capture->active) return CAPTURED_EVENT;
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
    for (unsigned i = 0; i < capture->count; i++)
        if (capture->members[i]->device == device && !(blocking_only && capture->members[i]->nonblocking)) return true;
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
    return event->capture ? refuse(event->capture, CAPTURED_EVENT) : OK;
}
