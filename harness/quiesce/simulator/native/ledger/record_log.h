// A log of records in a mapped file that only grows: a header, then records, of which those with equal content may be
// written once. A record is complete once `used_bytes` includes it, so that a killed process leaves a readable log. A
// record's number says where it is, in units of 8 bytes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"

#define RECORD_LOG_BYTES (1ull << 30)  // of address space and of a sparse file; only what is written costs anything

struct record_header {
    uint64_t magic;
    uint32_t layout, unused;
    uint64_t used_bytes;  // of the file, this header included
    uint64_t lost;        // what found no room
};

struct record_head {
    uint32_t kind;
    uint32_t length_bytes;  // of what follows, without the padding to a multiple of 8
};

struct record_log {
    struct record_header *header;  // NULL: it is not open
    uint32_t *table;  // a hash table of records, by content; entries are their numbers
    uint32_t table_capacity, table_count;
    uint64_t reserved_bytes;  // so many of the file can be written
    enum full full;           // what the ledger says where the disk has no room for more
    bool is_full;
    char path[1024];
};

// Opens a log in a file that is made, or (an empty path) in memory that nobody else sees.
bool record_log_open(struct record_log *log, const char *path, uint64_t magic, uint32_t layout, enum full full);
void record_log_close(struct record_log *log);

// Both return the number of a record, or 0 where there is no room for it; the second one writes each content once.
uint32_t record_log_append(struct record_log *log, uint32_t kind, const void *content, uint32_t length_bytes);
uint32_t record_log_intern(struct record_log *log, uint32_t kind, const void *content, uint32_t length_bytes);
