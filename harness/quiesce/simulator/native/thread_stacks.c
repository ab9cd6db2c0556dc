#include "thread_stacks.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mappings.h"

enum {
    THREADS_MAX = 4096,
    TRIES = 10,
    NAP_NANOSECONDS = 200000,
    RED_ZONE_BYTES = 128,  // System V ABI for AMD64, "The Stack Frame": below the pointer, for a function's own use
    DESCRIPTOR_ALIGNMENT = 64,
    DESCRIPTOR_PAGES = 3,  // in which glibc's struct pthread lies, at the end of a stack
    SELF_WORD = 2,         // its words that are its own address: `tcb` and `self`
    // Its thread's number. The kernel clears it at the thread's end (clone(2), CLEARTID); pthread_join() makes it -1.
    THREAD_OFFSET = 0x2d0,
};

static uint64_t pointers[THREADS_MAX];
static unsigned pointers_count;
static bool offset_is_right;

// Returns the pointer of a thread that waits: "… stack-pointer program-counter", or 0: "running", or it has ended.
static uint64_t pointer_of(const char *thread) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%s/syscall", thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0) return 0;
    text[got] = 0;
    char *last = strrchr(text, ' ');
    if (!last) return 0;
    *last = 0;
    char *before = strrchr(text, ' ');
    return before ? strtoull(before + 1, NULL, 16) : 0;
}

// A thread that ends has often told so before it is gone: it is given a moment.
static void note(const char *thread) {
    uint64_t pointer = pointer_of(thread);
    for (unsigned i = 0; i < TRIES && !pointer; i++) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NANOSECONDS}, NULL);
        pointer = pointer_of(thread);
    }
    if (pointer && pointers_count < THREADS_MAX) pointers[pointers_count++] = pointer;
}

struct entry {  // struct linux_dirent64
    uint64_t number;
    int64_t offset;
    unsigned short length_bytes;
    unsigned char type;
    char name[];
};

void thread_stacks_note(void) {
    pointers_count = 0;
    pid_t self = (pid_t)syscall(SYS_gettid);
    offset_is_right = *(pid_t *)(pthread_self() + THREAD_OFFSET) == self;
    int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    char room[4096] __attribute__((aligned(8)));
    for (long got; (got = syscall(SYS_getdents64, folder, room, sizeof room)) > 0;)
        for (long at = 0; at < got; at += ((struct entry *)(room + at))->length_bytes) {
            const char *name = ((struct entry *)(room + at))->name;
            if (*name != '.' && atoi(name) != self) note(name);
        }
    close(folder);
}

// Returns the descriptor of the thread to which a stack belongs, or NULL.
static const char *find_descriptor(uint64_t start, uint64_t end) {
    uint64_t lowest = end - start > DESCRIPTOR_PAGES * PAGE_BYTES ? end - DESCRIPTOR_PAGES * PAGE_BYTES : start;
    for (uint64_t at = end - DESCRIPTOR_ALIGNMENT; at >= lowest; at -= DESCRIPTOR_ALIGNMENT) {
        const uint64_t *words = (const uint64_t *)at;
        if (words[0] == at && words[SELF_WORD] == at && at + THREAD_OFFSET + sizeof(pid_t) <= end)
            return (const char *)at;
    }
    return NULL;
}

uint64_t thread_stack_in(uint64_t start, uint64_t end) {
    uint64_t lowest = 0;
    for (unsigned i = 0; i < pointers_count; i++)
        if (start <= pointers[i] && pointers[i] < end && (!lowest || pointers[i] < lowest)) lowest = pointers[i];
    if (lowest) return lowest - start < RED_ZONE_BYTES ? start : (lowest - RED_ZONE_BYTES) & ~7ull;
    if (!offset_is_right) return 0;
    const char *descriptor = find_descriptor(start, end);
    if (!descriptor) return 0;
    return *(const pid_t *)(descriptor + THREAD_OFFSET) > 0 ? start : end;
}
