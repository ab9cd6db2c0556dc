// What a process of a run shares with others: a table in a file next to its ledger, which those who open a handle map.
//
// The runtime of each process writes for itself: who exports says what there is and when it ends, who opens says that
// it has it open. Both ask whether the other still runs. The judge reads ledgers alone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"

enum { SHARED_ENTRIES = 4096, SHARED_OPENERS = 16, SHARED_STEM_BYTES = 32 };

struct shared_entry {
    uint64_t serial;  // of the exporter's live table; written last. 0: the entry is not used
    uint64_t hidden_address, hidden_file, size_bytes;  // see hidden.h; of memory, and where its file begins
    uint32_t thing, device, ended;  // ended: freed or destroyed
    uint32_t openers[SHARED_OPENERS];
};

struct shared_table {
    uint32_t process, exited;
    struct shared_entry entries[SHARED_ENTRIES];
};

// cudaIpcMemHandle_t and cudaIpcEventHandle_t, and HIP's: 64 bytes that programs send as they are, and compare.
struct shared_handle {
    uint32_t magic, thing, entry, unused;
    uint64_t serial;
    char stem[SHARED_STEM_BYTES];  // of the exporter's files
    uint64_t unused_too;
};
_Static_assert(sizeof(struct shared_handle) == 64, "the size that the vendors' headers have");

// The process's own table. An entry is made once for each serial; NULL: there is no room.
struct shared_entry *shared_export(enum thing thing, uint64_t serial);
struct shared_entry *shared_exported(enum thing thing, uint64_t serial);  // NULL: it was not
void shared_describe(const struct shared_entry *entry, struct shared_handle *handle);

// What a handle stands for, if it still is there: its exporter runs and has not ended it. NULL: nothing.
const struct shared_table *shared_find(const struct shared_handle *handle, enum thing thing,
                                       struct shared_entry **entry);
bool shared_is_own(const struct shared_handle *handle);  // this process exported it
bool shared_is_over(const struct shared_table *table, const struct shared_entry *entry);

// Notes whether this process has it open. False: too many others have.
bool shared_open(struct shared_entry *entry);
void shared_close(struct shared_entry *entry);
uint32_t shared_opener(const struct shared_entry *entry);  // a process that runs and has it open; 0: none

// The path of a file next to the exporter's ledger.
bool shared_path(char *path, uint64_t bytes, const char *stem, const char *ending);

// Whether this process shares anything. Each call then gets its place among those of all processes of the run.
extern bool shared_any;
void shared_tick(void);

void shared_exit(void);  // the process ends: what it exported is over
void shared_tables_close(void);
