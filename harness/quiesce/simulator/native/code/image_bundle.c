// Bundles of code objects, as hipcc writes them (Clang, "Offload Bundler": "Bundled Binary File Layout").
#include <elf.h>
#include <string.h>

#include "code/image.h"

static const char MAGIC[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { MAGIC_BYTES = sizeof MAGIC - 1, ENTRIES_MAX = 1024, NAME_MAX_BYTES = 4096 };

struct entry {
    uint64_t offset, size_bytes, name_bytes;
};

size_t image_bundle(const char *image, size_t room, const char **code, size_t *code_bytes) {
    uint64_t count;
    size_t at = MAGIC_BYTES + sizeof count, whole = 0;
    *code = NULL;
    if (room < at || strncmp(image, MAGIC, MAGIC_BYTES)) return 0;
    memcpy(&count, image + MAGIC_BYTES, sizeof count);
    if (count > ENTRIES_MAX) return 0;
    for (uint64_t i = 0; i < count; i++) {
        struct entry entry;
        if (room - at < sizeof entry) return 0;
        memcpy(&entry, image + at, sizeof entry);
        at += sizeof entry;
        if (entry.name_bytes > NAME_MAX_BYTES || entry.name_bytes > room - at) return 0;
        at += entry.name_bytes;
        if (entry.offset > room || entry.size_bytes > room - entry.offset) return 0;
        if (entry.offset + entry.size_bytes > whole) whole = entry.offset + entry.size_bytes;
        bool is_code = entry.size_bytes > sizeof(Elf64_Ehdr) && !memcmp(image + entry.offset, ELFMAG, SELFMAG);
        if (*code || !is_code) continue;  // of several for one device the first is as good: none runs
        *code = image + entry.offset;
        *code_bytes = entry.size_bytes;
    }
    return *code ? whole : 0;
}
