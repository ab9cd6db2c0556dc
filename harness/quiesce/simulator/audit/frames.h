// Where functions begin and end, as an object tells those who unwind its call stacks (DWARF, .eh_frame_hdr).
#pragma once

#include "object.h"

typedef struct {
    const object *of;
    ElfW(Addr) header;  // what the table's entries are relative to
    const int32_t (*table)[2];  // where a function begins, and its entry of .eh_frame; sorted
    int count;
} frames;

// Find the table; 0 where the object has none of the usual form.
int frames_open(frames *table, const object *of);

ElfW(Addr) frames_start(const frames *table, int number);
uint32_t frames_size(const frames *table, int number);  // in bytes; 0 where it is not known

// Return the number of the function that an address is in, or -1.
int frames_find(const frames *table, ElfW(Addr) address);
