#include "machine/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // since Linux 5.14
#endif

enum { PAGE_BYTES = 4096 };

// Whether there is room now, or why not. The file is opened each time: a program may close descriptors that it does not
// know, and use their numbers.
static int allocate(const char *path, uint64_t offset, uint64_t bytes) {
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return errno;
    int why = fallocate(file, 0, (off_t)offset, (off_t)bytes) ? errno : 0;
    close(file);
    return why;
}

bool disk_reserve(const char *path, void *map, uint64_t offset, uint64_t bytes) {
    uint64_t start = offset / PAGE_BYTES * PAGE_BYTES;
    uint64_t length = (offset + bytes - start + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    int before = errno, why = allocate(path, start, length);
    if (why && why != ENOSPC && why != EDQUOT)  // a file system that can't, or a program that changed its root
        why = madvise((char *)map + start, length, MADV_POPULATE_WRITE) && errno != EINVAL ? ENOSPC : 0;
    errno = before;
    return !why;
}

bool disk_has_other_reason(void) { return errno == EOPNOTSUPP || errno == ENOSYS; }

bool disk_allows(uint64_t length_bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || length_bytes <= limit.rlim_cur) return true;
    errno = EFBIG;
    return false;
}

bool disk_append(const char *path, const void *content, size_t bytes) {
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return false;
    off_t end = lseek(file, 0, SEEK_END);
    bool is_whole = end >= 0 && disk_allows((uint64_t)end + bytes);
    is_whole = is_whole && write(file, content, bytes) == (ssize_t)bytes;
    if (!is_whole && end >= 0 && ftruncate(file, end)) is_whole = false;  // the reader leaves out what is cut
    close(file);
    return is_whole;
}
