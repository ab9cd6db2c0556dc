#include "code/fatbin.h"

#include <string.h>

struct wrapper {
    uint32_t magic, version;
    const char *fatbin;
    const char *const *linked;
};

struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;  // behind the header
};

const char *fatbin_of(const char *image) {
    struct wrapper wrapper;
    memcpy(&wrapper.magic, image, sizeof wrapper.magic);
    if (wrapper.magic == WRAPPER_MAGIC || wrapper.magic == HIP_WRAPPER_MAGIC) {
        memcpy(&wrapper, image, sizeof wrapper);
        image = wrapper.fatbin;
        if (!image) return NULL;
        memcpy(&wrapper.magic, image, sizeof wrapper.magic);
    }
    return wrapper.magic == FATBIN_MAGIC ? image : NULL;
}

const char *const *fatbins_linked(const char *image) {
    enum { OF_LINKED_CODE = 2 };
    struct wrapper wrapper;
    memcpy(&wrapper.magic, image, sizeof wrapper.magic);
    if (wrapper.magic != WRAPPER_MAGIC) return NULL;
    memcpy(&wrapper, image, sizeof wrapper);
    return wrapper.version == OF_LINKED_CODE ? wrapper.linked : NULL;
}

static struct fatbin_part part_at(const char *at, const struct fatbin_entry *entry) {
    struct fatbin_part part = {.entry = *entry, .content = at + entry->header_bytes};
    if (entry->header_bytes >= sizeof *entry + sizeof part.packing)
        memcpy(&part.packing, at + sizeof *entry, sizeof part.packing);
    return part;
}

enum { ARCHITECTURE_MAX = 9999 };

struct fatbin_part fatbin_best(const char *fatbin, size_t room, int device,
                               int (*rank)(const struct fatbin_entry *entry, int device)) {
    struct fatbin_part best = {.content = NULL};
    struct fatbin header;
    int highest = 0;
    if (room < sizeof header) return best;
    memcpy(&header, fatbin, sizeof header);
    if (header.header_bytes > room) return best;
    size_t end = header.bytes < room - header.header_bytes ? header.header_bytes + header.bytes : room;
    for (size_t at = header.header_bytes; at + sizeof(struct fatbin_entry) <= end;) {
        struct fatbin_entry entry;
        memcpy(&entry, fatbin + at, sizeof entry);
        if (entry.header_bytes < sizeof entry || entry.bytes > end - at ||
            entry.header_bytes > end - at - entry.bytes || entry.architecture > ARCHITECTURE_MAX)
            break;  // damaged, or of a form that is not known
        int found = rank(&entry, device);
        if (found > highest) {
            highest = found;
            best = part_at(fatbin + at, &entry);
        }
        at += entry.header_bytes + entry.bytes;
    }
    return best;
}
