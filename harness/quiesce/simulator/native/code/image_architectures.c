// What an image was compiled for, by its format: a fatbin, a cubin, PTX text.
//
// A fatbin is a header and entries, each a header of its own with the architecture and behind it PTX or a cubin, often
// compressed (as n-eiling/cuda-fatbin-decompression and jiegec/fatbinary have it; nvcc 11.8 to 13 were tried). Clients
// hand it over within the structure that a compiler wrote beside it (fatbinary_section.h: __fatBinC_Wrapper_t).
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "code/image.h"
#include "code/image_packed.h"

#define WRAPPER_MAGIC 0x466243b1u
#define HIP_WRAPPER_MAGIC 0x48495046u
#define FATBIN_MAGIC 0xba55ed50u

struct wrapper {
    uint32_t magic, version;
    const char *fatbin;
};

struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;  // behind the header
};

struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes, options;
    uint16_t minor, major;
    uint32_t architecture;
    uint32_t name[2];
    uint64_t packing, unused, unpacked_bytes;  // image_packed.h
};

enum { ENTRY_PTX = 1, ENTRY_CUBIN = 2, UNPACKED_MAX = 1 << 30 };

static struct architectures architectures_of(const struct entry *entry, const char *content, int device) {
    int architecture = (int)entry->architecture;
    if (entry->kind == ENTRY_PTX) return (struct architectures){architecture, device};
    struct architectures found = {0, 0};
    if (!entry->compressed_bytes) found = image_elf_architectures(content, entry->bytes, device);
    return (struct architectures){found.ptx ? found.ptx : architecture, architecture};
}

// How well a piece of code suits a device: of two the higher one is taken.
static int rank_of(const struct entry *entry, int device) {
    enum { FITS = 10000, IS_BINARY = 10000 };
    int architecture = (int)entry->architecture;
    if (entry->kind != ENTRY_PTX && entry->kind != ENTRY_CUBIN) return 0;
    bool is_older = architecture <= device, is_near = architecture / 10 == device / 10;
    if (entry->kind == ENTRY_CUBIN && is_older && is_near) return FITS + IS_BINARY + architecture;
    if (entry->kind == ENTRY_PTX && is_older) return FITS + architecture;
    return FITS - architecture;
}

struct found {
    struct entry entry;
    const char *content;  // NULL: there is none
};

// The part of a fatbin that a device would load, of all or of those that can be looked through.
static struct found best_of(const char *fatbin, size_t room, int device, bool is_plain) {
    struct found best = {.content = NULL};
    struct fatbin header;
    int highest = 0;
    memcpy(&header, fatbin, sizeof header);
    size_t end = header.bytes < room - header.header_bytes ? header.header_bytes + header.bytes : room;
    for (size_t at = header.header_bytes; at + sizeof(struct entry) <= end;) {
        struct entry entry;
        memcpy(&entry, fatbin + at, sizeof entry);
        if (entry.header_bytes < sizeof entry || entry.bytes > end - at || entry.header_bytes > end - at - entry.bytes)
            break;  // damaged, or of a form that is not known
        int rank = is_plain && entry.compressed_bytes ? 0 : rank_of(&entry, device);
        if (rank > highest) {
            highest = rank;
            best = (struct found){entry, fatbin + at + entry.header_bytes};
        }
        at += entry.header_bytes + entry.bytes;
    }
    return best;
}

static struct architectures of_fatbin(const char *fatbin, size_t room, int device) {
    struct found best = best_of(fatbin, room, device, false);
    return best.content ? architectures_of(&best.entry, best.content, device) : (struct architectures){0, 0};
}

// ".target sm_75, debug": a directive on a line of its own (PTX ISA, "PTX Module Directives").
static int target_of(const char *text, size_t room) {
    static const char DIRECTIVE[] = ".target", PREFIX[] = "sm_";
    const char *end = text + strnlen(text, room);
    for (const char *line = text; line < end; line++) {
        line += strspn(line, " \t");
        if (!strncmp(line, DIRECTIVE, sizeof DIRECTIVE - 1)) {
            const char *name = line + sizeof DIRECTIVE - 1 + strspn(line + sizeof DIRECTIVE - 1, " \t");
            return strncmp(name, PREFIX, sizeof PREFIX - 1) ? 0 : atoi(name + sizeof PREFIX - 1);
        }
        line += strcspn(line, "\n");
    }
    return 0;
}

struct architectures image_architectures(const char *image, size_t room, int device) {
    struct wrapper wrapper;
    memcpy(&wrapper, image, sizeof wrapper.magic);
    if (wrapper.magic == FATBIN_MAGIC) return of_fatbin(image, room, device);
    if (wrapper.magic == WRAPPER_MAGIC) {
        memcpy(&wrapper, image, sizeof wrapper);
        memcpy(&wrapper.magic, wrapper.fatbin, sizeof wrapper.magic);
        if (wrapper.magic == FATBIN_MAGIC) return of_fatbin(wrapper.fatbin, SIZE_MAX, device);
        return (struct architectures){0, 0};
    }
    size_t bytes = image_length(image, room);
    if (!bytes || bytes > room) return (struct architectures){0, 0};
    if (!memcmp(image, ELFMAG, SELFMAG)) return image_elf_architectures(image, bytes, device);
    int target = target_of(image, bytes);
    return (struct architectures){target, target ? device : 0};
}

// A copy of a piece of code, unpacked, with a NUL behind it.
static char *copy_of(const struct entry *entry, const char *content, size_t *bytes) {
    *bytes = entry->compressed_bytes ? entry->unpacked_bytes : entry->bytes;
    if (*bytes > UNPACKED_MAX || entry->compressed_bytes > entry->bytes) return NULL;
    char *copy = calloc(1, *bytes + 1);
    bool whole = copy;
    if (whole && entry->compressed_bytes)
        whole = image_unpack(entry->packing, content, entry->compressed_bytes, copy, *bytes);
    else if (whole)
        memcpy(copy, content, *bytes);
    if (whole && entry->kind == ENTRY_PTX) *bytes = strlen(copy);
    if (whole) return copy;
    free(copy);
    return NULL;
}

char *image_code(const char *image, int device, size_t *bytes) {
    struct wrapper wrapper;
    memcpy(&wrapper, image, sizeof wrapper.magic);
    if (wrapper.magic == WRAPPER_MAGIC || wrapper.magic == HIP_WRAPPER_MAGIC) {
        memcpy(&wrapper, image, sizeof wrapper);
        image = wrapper.fatbin;
        if (image) memcpy(&wrapper.magic, image, sizeof wrapper.magic);
    }
    if (!image) return NULL;
    if (wrapper.magic == FATBIN_MAGIC) {
        struct found best = best_of(image, SIZE_MAX, device, true);
        if (!best.content) best = best_of(image, SIZE_MAX, device, false);
        return best.content ? copy_of(&best.entry, best.content, bytes) : NULL;
    }
    *bytes = image_length(image, SIZE_MAX);
    char *copy = *bytes ? calloc(1, *bytes + 1) : NULL;
    return copy ? memcpy(copy, image, *bytes) : NULL;
}
