#include "memory/symbol.h"

#include <stdlib.h>

#include "machine/device.h"

// Clients register as their libraries are loaded, and ask about few: a list is enough, the newest first.
static struct symbol {
    struct symbol *next;
    uint64_t address, size_bytes;
} *symbols;
static uint64_t lowest = UINT64_MAX, end;  // between them lie all: few copies are to variables

void symbol_register(uint64_t address, uint64_t size_bytes) {
    struct symbol *made = malloc(sizeof *made);
    if (!made) return;  // then copies to it are refused
    *made = (struct symbol){symbols, address, size_bytes};
    symbols = made;
    if (address < lowest) lowest = address;
    if (address + size_bytes > end) end = address + size_bytes;
}

uint64_t symbol_size(uint64_t address) {
    for (const struct symbol *each = symbols; each; each = each->next)
        if (each->address == address) return each->size_bytes;
    return 0;
}

struct span symbol_find(uint64_t address) {
    if (address < lowest || address >= end) return (struct span){0};
    for (const struct symbol *each = symbols; each; each = each->next)
        if (address - each->address < each->size_bytes)
            return (struct span){THING_DEVICE, device_current(), each->address, each->size_bytes, 0, false};
    return (struct span){0};
}
