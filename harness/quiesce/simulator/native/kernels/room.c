#include "kernels/room.h"

#include <stdint.h>
#include <sys/mman.h>

#include "machine/mappings.h"
#include "machine/settings.h"

enum { ALIGNMENT = 256 };  // of shared memory: more than any type of PTX asks for
static const size_t GUARD_BYTES = (size_t)1 << 32 | (size_t)1 << 24;

static struct room rooms[ROOMS_MAX];
static unsigned count;

static size_t align(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static void unmap(struct room *room) {
    if (room->memory) munmap(room->memory, room->mapped_bytes);
    *room = (struct room){0};
}

// The last page may be read: the search for roots takes memory that follows what nobody may touch for a stack.
static bool protect(char *memory, size_t bytes) {
    return !mprotect(memory, bytes, PROT_READ | PROT_WRITE) &&
           !mprotect(memory + bytes + GUARD_BYTES - PAGE_BYTES, PAGE_BYTES, PROT_READ);
}

// A process whose address space is limited has no room for what nobody may touch, and goes without it.
static bool map(struct room *room, size_t bytes) {
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    unmap(room);
    void *memory = mmap(NULL, bytes + GUARD_BYTES, PROT_NONE, FLAGS, -1, 0);
    if (memory != MAP_FAILED) {
        *room = (struct room){.memory = memory, .bytes = bytes, .mapped_bytes = bytes + GUARD_BYTES};
        if (protect(memory, bytes)) return true;
        unmap(room);
    }
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, FLAGS, -1, 0);
    if (memory == MAP_FAILED) return false;
    *room = (struct room){.memory = memory, .bytes = bytes, .mapped_bytes = bytes};
    return true;
}

struct room *room_take(unsigned number, size_t threads_bytes, size_t shared_bytes) {
    struct room *room = &rooms[number];
    size_t shared = align(shared_bytes, ALIGNMENT), wanted = align(threads_bytes + shared, PAGE_BYTES);
    if ((!room->memory || room->bytes < wanted) && !map(room, wanted)) return NULL;
    if (number >= count) count = number + 1;
    room->shared = room->memory + room->bytes - shared;
    return room;
}

static void trim(unsigned left) {
    while (count > left) unmap(&rooms[--count]);
}

void rooms_give_back(void) { trim(1 + settings.kernel_threads); }

void rooms_close(void) { trim(0); }

void rooms_range(void (*add)(const void *start, size_t bytes)) {
    for (unsigned i = 0; i < count; i++) add(rooms[i].memory, rooms[i].bytes);
}
