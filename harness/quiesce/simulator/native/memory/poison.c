#include "memory/poison.h"

#include <sys/mman.h>

#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "machine/settings.h"

enum { LARGE_BYTES = 1 << 20, EDGE_BYTES = 4096 };

void verify_red_zone(uint64_t end, uint64_t address) {
    const unsigned char *zone = (const unsigned char *)end;
    for (uint64_t i = 0; i < settings.red_zone_bytes; i++)
        if (zone[i] != RED_ZONE_BYTE) {
            ledger_see_wrong((struct observation){
                .seen = SEEN_DAMAGED, .stack = stack_of_call(), .address = address, .other = end + i});
            return;
        }
}

// Large blocks go back to the system, which reads as zeros; only their edges are filled.
void poison(uint64_t address, uint64_t size_bytes) {
    if (size_bytes >= LARGE_BYTES) {
        uint64_t start = (address + 4095) & ~4095ull, end = (address + size_bytes) & ~4095ull;
        madvise((void *)start, end - start, MADV_DONTNEED);
    }
    if (!settings.poison) return;
    if (size_bytes < LARGE_BYTES) {
        memset((void *)address, FREED_BYTE, size_bytes);
    } else {
        memset((void *)address, FREED_BYTE, EDGE_BYTES);
        memset((char *)address + size_bytes - EDGE_BYTES, FREED_BYTE, EDGE_BYTES);
    }
}
