#include "frames.h"

#include <stddef.h>

enum { RELATIVE_4_BYTES = 0x1b, COUNT_4_BYTES = 0x03, RELATIVE_TO_HEADER = 0x3b };  // DW_EH_PE_…, as all linkers write

typedef struct {
    unsigned char version, frame_form, count_form, table_form;
    int32_t frame;
    uint32_t count;
} header;

int frames_open(frames *table, const object *of) {
    for (int each = 0; each < of->segment_count; each++) {
        const Elf64_Phdr *segment = &of->segments[each];
        if (segment->p_type != PT_GNU_EH_FRAME) continue;
        const header *found = object_at(of, segment->p_vaddr, sizeof *found);
        if (!found || found->version != 1 || found->frame_form != RELATIVE_4_BYTES) return 0;
        if (found->count_form != COUNT_4_BYTES || found->table_form != RELATIVE_TO_HEADER) return 0;
        size_t size_bytes = (size_t)found->count * sizeof *table->table;
        *table = (frames){of, segment->p_vaddr, object_at(of, segment->p_vaddr + sizeof *found, size_bytes),
                          (int)found->count};
        return table->table && table->count > 0;
    }
    return 0;
}

ElfW(Addr) frames_start(const frames *table, int number) {
    return table->header + (ElfW(Addr))(int64_t)table->table[number][0];
}

// An entry of .eh_frame: its length, the distance to what is common to several, where the function begins, its size.
uint32_t frames_size(const frames *table, int number) {
    const uint32_t *entry = object_at(table->of, table->header + (ElfW(Addr))(int64_t)table->table[number][1], 16);
    return entry ? entry[3] : 0;
}

int frames_find(const frames *table, ElfW(Addr) address) {
    int low = 0, high = table->count;  // the last one that begins before the address or at it
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (frames_start(table, middle) <= address)
            low = middle;
        else
            high = middle;
    }
    return address - frames_start(table, low) < frames_size(table, low) ? low : -1;
}
