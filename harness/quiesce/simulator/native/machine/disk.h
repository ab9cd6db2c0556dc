// Room on the disk for files of the run. A full disk must end no program: a write to a page of a mapped file for which
// there is no room is a SIGBUS, and one beyond the limit of RLIMIT_FSIZE is a SIGXFSZ.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Makes sure that pages of a file that is mapped at `map` can be written. False: there is no room for them.
bool disk_reserve(const char *path, void *map, uint64_t offset, uint64_t bytes);

// After fallocate(2) failed: whether there may be room all the same, on a file system that does not know the call.
bool disk_has_other_reason(void);

// Whether a file may be that long. False sets errno.
bool disk_allows(uint64_t length_bytes);

// Appends to a file, which is made where there is none: all of the bytes or none of them.
bool disk_append(const char *path, const void *content, size_t bytes);
