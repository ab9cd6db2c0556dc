// Memory from the system, for a module without an allocator: see audit.c.
#pragma once

#include <stddef.h>
#include <sys/mman.h>

#include "system.h"

// Return zeroed memory, or NULL.
static inline void *memory_map(size_t size_bytes) {
    const long arguments[] = {
        0, (long)size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0};
    long result = call_system_with_six(SYS_mmap, arguments);
    return result < 0 && result > -4096 ? NULL : (void *)result;
}

// Return what a file holds, to be read; NULL where it can't be mapped.
static inline void *memory_map_file(int file, size_t size_bytes) {
    const long arguments[] = {0, (long)size_bytes, PROT_READ, MAP_PRIVATE, file, 0};
    long result = call_system_with_six(SYS_mmap, arguments);
    return result < 0 && result > -4096 ? NULL : (void *)result;
}

static inline void memory_unmap(void *memory, size_t size_bytes) {
    if (memory) call_system(SYS_munmap, (long)memory, (long)size_bytes, 0, 0);
}

// Say what may be done with whole pages; return 0 where the system refuses.
static inline int memory_protect(void *memory, size_t size_bytes, int protection) {
    return call_system(SYS_mprotect, (long)memory, (long)size_bytes, protection, 0) == 0;
}
