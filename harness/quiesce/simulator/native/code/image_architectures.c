// What an image was compiled for, by its format: a fatbin, a cubin, PTX text.
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "code/fatbin.h"
#include "code/image.h"
#include "code/image_packed.h"

static struct architectures architectures_of(const struct fatbin_part *part, int device) {
    int architecture = (int)part->entry.architecture;
    if (part->entry.kind == ENTRY_PTX) return (struct architectures){architecture, device};
    struct architectures found = {0, 0};
    if (!part->entry.compressed_bytes)
        found = image_elf_architectures(part->content, part->entry.bytes, device);
    return (struct architectures){found.ptx ? found.ptx : architecture, architecture};
}

// How well a piece of code suits a device: of two the higher one is taken.
static int rank_of(const struct fatbin_entry *entry, int device) {
    enum { FITS = 10000, IS_BINARY = 10000 };
    int architecture = (int)entry->architecture;
    if (entry->kind != ENTRY_PTX && entry->kind != ENTRY_CUBIN) return 0;
    bool is_older = architecture <= device, is_near = architecture / 10 == device / 10;
    if (entry->kind == ENTRY_CUBIN && is_older && is_near) return FITS + IS_BINARY + architecture;
    if (entry->kind == ENTRY_PTX && is_older) return FITS + architecture;
    return FITS - architecture;
}

static int rank_of_plain(const struct fatbin_entry *entry, int device) {
    return entry->compressed_bytes ? 0 : rank_of(entry, device);
}

// ".target sm_75, debug": a directive on a line of its own (PTX ISA, "PTX Module Directives").
int image_target(const char *text, size_t room) {
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
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    if (magic == FATBIN_MAGIC || magic == WRAPPER_MAGIC) {
        const char *fatbin = fatbin_of(image);
        struct fatbin_part best = {.content = NULL};
        if (fatbin) best = fatbin_best(fatbin, magic == FATBIN_MAGIC ? room : SIZE_MAX, device, rank_of);
        return best.content ? architectures_of(&best, device) : (struct architectures){0, 0};
    }
    size_t bytes = image_length(image, room);
    if (!bytes || bytes > room) return (struct architectures){0, 0};
    if (!memcmp(image, ELFMAG, SELFMAG)) return image_elf_architectures(image, bytes, device);
    int target = image_target(image, bytes);
    return (struct architectures){target, target ? device : 0};
}

// A copy of a piece of code, unpacked, with a NUL behind it.
static char *copy_of(const struct fatbin_part *part, size_t *bytes) {
    enum { UNPACKED_MAX = 1 << 28 };
    const struct fatbin_entry *entry = &part->entry;
    *bytes = entry->compressed_bytes ? part->packing.plain_bytes : entry->bytes;
    if (*bytes > UNPACKED_MAX || entry->compressed_bytes > entry->bytes) return NULL;
    char *copy = calloc(1, *bytes + 1);
    bool whole = copy;
    if (whole && entry->compressed_bytes)
        whole = image_unpack(part->packing.flags, part->content, entry->compressed_bytes, copy, *bytes);
    else if (whole)
        memcpy(copy, part->content, *bytes);
    if (whole && entry->kind == ENTRY_PTX) *bytes = strlen(copy);
    if (whole) return copy;
    free(copy);
    return NULL;
}

char *image_code(const char *image, int device, size_t *bytes) {
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    const char *fatbin = fatbin_of(image);
    if (fatbin) {
        struct fatbin_part best = fatbin_best(fatbin, SIZE_MAX, device, rank_of_plain);
        if (!best.content) best = fatbin_best(fatbin, SIZE_MAX, device, rank_of);
        return best.content ? copy_of(&best, bytes) : NULL;
    }
    if (magic == WRAPPER_MAGIC || magic == HIP_WRAPPER_MAGIC) memcpy(&image, image + 2 * sizeof magic, sizeof image);
    *bytes = image ? image_length(image, SIZE_MAX) : 0;
    char *copy = *bytes ? calloc(1, *bytes + 1) : NULL;
    return copy ? memcpy(copy, image, *bytes) : NULL;
}

static int rank_of_ptx(const struct fatbin_entry *entry, int device) {
    return entry->kind == ENTRY_PTX ? rank_of(entry, device) : 0;
}

char *image_ptx(const char *fatbin, size_t room, int device, size_t *bytes) {
    struct fatbin_part best = fatbin_best(fatbin, room, device, rank_of_ptx);
    return best.content ? copy_of(&best, bytes) : NULL;
}
