/* System calls and text without the C library, for a module that has none: see audit.c. */
#pragma once

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long call_system(long number, long first, long second, long third, long fourth) {
    long result;
    register long fourth_register __asm__("r10") = fourth;
    __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third), "r"(fourth_register)
                   : "rcx", "r11", "memory");
    return result;  // negative for an error
}

static inline long call_system_with_six(long number, const long arguments[6]) {
    long result;
    register long fourth __asm__("r10") = arguments[3];
    register long fifth __asm__("r8") = arguments[4];
    register long sixth __asm__("r9") = arguments[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(fourth), "r"(fifth),
                       "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

static inline int open_file(const char *path, int flags) {
    return (int)call_system(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0600);
}

static inline long read_at(int file, void *place, size_t size_bytes, long offset) {
    return call_system(SYS_pread64, file, (long)place, (long)size_bytes, offset);
}

static inline void close_file(int file) { call_system(SYS_close, file, 0, 0, 0); }

static inline int is_file(const char *path) { return call_system(SYS_access, (long)path, 4 /* R_OK */, 0, 0) == 0; }

static inline size_t length_of(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

static inline int begins_with(const char *text, const char *beginning) {
    while (*beginning)
        if (*text++ != *beginning++) return 0;
    return 1;
}

static inline int is_same(const char *one, const char *other) {
    while (*one && *one == *other) one++, other++;
    return *one == *other;
}

static inline const char *base_name(const char *path) {
    const char *base = path;
    for (; *path; path++)
        if (*path == '/') base = path + 1;
    return base;
}

/* Add text at the end of what stands in a place of so many bytes; return 0 where it has no room. */
static inline int append(char *place, size_t size_bytes, const char *text) {
    size_t used = length_of(place), more = length_of(text);
    if (used + more + 1 > size_bytes) return 0;
    for (size_t each = 0; each <= more; each++) place[used + each] = text[each];
    return 1;
}
