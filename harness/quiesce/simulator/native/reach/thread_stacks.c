#include "reach/thread_stacks.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "machine/mappings.h"

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

static struct waiting {
    uint32_t thread;
    uint64_t pointer;
    bool has_hidden_registers;
} threads[THREADS_MAX];
static unsigned threads_count;
static bool offset_is_right;

// Calls for which the C library's functions save registers: futex, nanosleep, clock_nanosleep, pause, select, pselect6,
// rt_sigsuspend, rt_sigtimedwait.
static bool saves_registers(long call) {
    return call == SYS_futex || call == SYS_nanosleep || call == SYS_clock_nanosleep || call == SYS_pause ||
           call == SYS_select || call == SYS_pselect6 || call == SYS_rt_sigsuspend || call == SYS_rt_sigtimedwait;
}

// Reads where a thread waits: "call arguments … stack-pointer program-counter". False: "running", or it has ended.
static bool read_wait(const char *thread, struct waiting *waiting) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%s/syscall", thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0) return false;
    text[got] = 0;
    char *last = strrchr(text, ' ');
    if (!last) return false;
    *last = 0;
    char *before = strrchr(text, ' ');
    if (!before) return false;
    waiting->pointer = strtoull(before + 1, NULL, 16);
    waiting->has_hidden_registers = !saves_registers(strtol(text, NULL, 10));
    return true;
}

// A thread that ends has often told so before it is gone: it is given a moment.
static void note(const char *thread) {
    struct waiting waiting = {.thread = (uint32_t)atoi(thread)};
    bool waits = read_wait(thread, &waiting);
    for (unsigned i = 0; i < TRIES && !waits; i++) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_NANOSECONDS}, NULL);
        waits = read_wait(thread, &waiting);
    }
    if (waits && threads_count < THREADS_MAX) threads[threads_count++] = waiting;
}

bool thread_has_hidden_registers(uint32_t thread) {
    for (unsigned i = 0; i < threads_count; i++)
        if (threads[i].thread == thread) return threads[i].has_hidden_registers;
    return false;
}

struct entry {  // struct linux_dirent64
    uint64_t number;
    int64_t offset;
    unsigned short length_bytes;
    unsigned char type;
    char name[];
};

void thread_stacks_note(void) {
    threads_count = 0;
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
    for (unsigned i = 0; i < threads_count; i++) {
        uint64_t pointer = threads[i].pointer;
        if (start <= pointer && pointer < end && (!lowest || pointer < lowest)) lowest = pointer;
    }
    if (lowest) return lowest - start < RED_ZONE_BYTES ? start : (lowest - RED_ZONE_BYTES) & ~7ull;
    if (!offset_is_right) return 0;
    const char *descriptor = find_descriptor(start, end);
    if (!descriptor) return 0;
    return *(const pid_t *)(descriptor + THREAD_OFFSET) > 0 ? start : end;
}
