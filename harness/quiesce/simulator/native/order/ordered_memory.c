#include "order/ordered_memory.h"

#include "memory/memory.h"
#include "order/capture.h"
#include "order/graph_memory.h"
#include "order/stream.h"

static uint64_t capture_of(const struct stream *stream) {
    uint64_t identifier;
    capture_state(stream, &identifier);
    return identifier;
}

static enum status capture_allocation(uint64_t size_bytes, struct stream *stream, uint64_t *address) {
    struct graph_memory *memory;
    enum status status = graph_memory_make(size_bytes, stream->device, capture_of(stream), &memory);
    if (status) return status;
    *address = memory->address;
    status = stream_enqueue(stream, &(struct work){.kind = WORK_ALLOCATE, .memory = memory});
    graph_memory_drop(memory);
    return status;
}

static enum status capture_free(uint64_t address, struct stream *stream) {
    struct graph_memory *memory;
    enum status status = graph_memory_end(address, capture_of(stream), &memory);
    return status ? status : stream_enqueue(stream, &(struct work){.kind = WORK_END, .memory = memory});
}

enum status memory_allocate_ordered(struct pool *pool, uint64_t size_bytes, struct stream *stream, uint64_t *address) {
    *address = 0;
    if (!size_bytes) return OK;
    if (stream->capture) return capture_allocation(size_bytes, stream, address);
    enum status status = capture_forbid_beside();
    if (status) return status;
    stream_keep(stream);  // host functions may run without the lock: another thread may destroy it
    status = memory_allocate_from(pool, size_bytes, &stream->serial, address);
    if (!status) stream_note_use(stream);
    stream_drop(stream);
    return status;
}

enum status memory_free_ordered(uint64_t address, struct stream *stream) {
    if (!address) return OK;
    if (stream->capture) return capture_free(address, stream);
    enum status status = capture_forbid_beside();
    if (status) return status;
    struct work work = {.kind = WORK_FREE};
    status = memory_begin_free(address, stream->serial, &work.freed);
    return status ? status : stream_enqueue(stream, &work);
}
