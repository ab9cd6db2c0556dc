// Which bytes each launch reads and writes, exactly: what races between launches, copies and frees are found by
// (judge/races). Compiled kernels set the bits themselves (kernels/translation/access_recording has the same
// numbers), and ask for the first use of each kind in a cell of memory, so that it is known where bits are set. After a
// launch its set is written to a log next to the ledger, each different set once.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/touch.h"
#include "kernels/wrong_access.h"

enum { TOUCHED_LAYOUT = 1 };

enum touched_record {
    TOUCHED_TEXT = 1,    // a kernel's name, or a place: FILE:LINE, or the instruction and its line in the PTX
    TOUCHED_SET = 2,     // how many pieces (8 bytes), struct touched_piece, then the masks of those that have one
    TOUCHED_LAUNCH = 3,  // struct touched_launch
};

// Bytes of one kind of use. Without a mask all of them are touched; else those whose bits are set in it, of which there
// is one for each byte from the start on. A mask of one cell stands for every cell of the piece.
struct touched_piece {
    uint64_t hidden_start, hidden_end;  // see hidden.h
    uint32_t place;  // a text
    uint32_t touch;
    uint32_t mask_bytes;
    uint32_t reserved;
};

struct touched_launch {
    uint64_t number;  // of its observation (SEEN_LAUNCHED)
    uint32_t set, kernel;  // records; set 0: too many pieces to be kept
};

const void *touched_log(void);  // NULL: nothing was written yet
void touched_close(void);

// The first use of some kinds (a bit for each) in the cells of an access.
void touched_note(uint64_t address, uint32_t kinds, uint32_t site);

// The same for bytes whose bits nobody has set: some of one access, or all of a range, which may be large, or of
// several. Ranges of one instruction that follow each other become one.
void touched_use(uint64_t address, uint64_t bytes, enum touch touch, uint32_t site);
void touched_range(uint64_t address, uint64_t bytes, enum touch touch, uint32_t site);
void touched_rows(uint64_t address, uint64_t bytes, struct touched_rows rows, enum touch touch, uint32_t site);

// Whether each of these bytes, of one access, was touched so by the launch that runs. Not known of ranges.
bool touched_is(uint64_t address, uint64_t bytes, enum touch touch);

// Something of the launch was lost: there was no memory for it.
void touched_lose(void);

// An access did not take place.
void touched_forget(uint64_t address, unsigned bytes, uint32_t kinds);

// Writes the set of the launch that ran. One that a user ended may have been left between a bit and its note.
void touched_end(const struct checked_launch *launch, bool by_user);
void touched_drop(void);  // what was touched since the last end is not written
