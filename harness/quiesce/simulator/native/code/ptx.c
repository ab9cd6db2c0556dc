#include "code/ptx.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "code/fatbin.h"
#include "code/image.h"

static uint64_t identities;

static int rank_of(const struct fatbin_entry *entry, int device) {
    enum { HIGHEST = 10000 };
    int architecture = (int)entry->architecture;
    if (entry->kind != ENTRY_PTX) return 0;
    return architecture <= device ? HIGHEST + architecture : HIGHEST - architecture;
}

static bool of_fatbin(struct ptx *ptx, const char *fatbin, size_t room, int device) {
    enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };
    struct fatbin_part part = fatbin_best(fatbin, room, device, rank_of);
    if (!part.content) return false;
    bool is_packed = part.entry.compressed_bytes && part.packing.plain_bytes;
    ptx->content = part.content;
    ptx->bytes = part.entry.bytes;
    ptx->architecture = (int)part.entry.architecture;
    if (is_packed && part.entry.compressed_bytes <= part.entry.bytes) {
        ptx->bytes = part.entry.compressed_bytes;
        ptx->packing = part.packing.flags & FLAG_ZSTD ? PACKED_ZSTD : PACKED_LZ4;
        ptx->plain_bytes = part.packing.plain_bytes;
    }
    return true;
}

// Appends what was linked, one text after another. What else was linked has no text.
static bool append(void *context, const char *input, size_t bytes) {
    struct ptx *ptx = context;
    if (bytes < 4 || !memcmp(input, ELFMAG, SELFMAG)) return true;
    bytes = strnlen(input, bytes);
    char *grown = realloc(ptx->own, ptx->bytes + bytes + 2);
    if (!grown) return false;
    ptx->own = grown;
    memcpy(grown + ptx->bytes, input, bytes);
    ptx->bytes += bytes;
    grown[ptx->bytes++] = '\n';
    grown[ptx->bytes] = 0;
    return true;
}

static bool of_image(struct ptx *ptx, const char *image, size_t room) {
    size_t bytes = image_length(image, room);
    if (!bytes || bytes > room) return false;
    if (!memcmp(image, ELFMAG, SELFMAG)) {
        if (!image_inputs(image, bytes, append, ptx)) return false;
        ptx->content = ptx->own;
    } else {
        ptx->content = image;
        ptx->bytes = strnlen(image, bytes);
    }
    if (ptx->content) ptx->architecture = image_target(ptx->content, ptx->bytes);
    return ptx->content && ptx->architecture;
}

// CUDA's own library for kernels: the compiler of kernels has its functions, as far as it has them.
bool ptx_is_of_device_runtime(const char *text) { return strstr(text, "__cuda_syscall_") != NULL; }

// False: some of it has no PTX, or none of it has.
static bool of_linked(struct ptx *ptx, const char *const *fatbins, int device) {
    bool whole = true;
    for (; *fatbins && whole; fatbins++) {
        size_t bytes;
        const char *fatbin = fatbin_of(*fatbins);
        char *text = fatbin ? image_ptx(fatbin, SIZE_MAX, device, &bytes) : NULL;
        whole = text && (ptx_is_of_device_runtime(text) || append(ptx, text, bytes));
        free(text);
    }
    ptx->content = ptx->own;
    if (ptx->own) ptx->architecture = image_target(ptx->content, ptx->bytes);
    return whole && ptx->own;
}

bool ptx_find(struct ptx *ptx, const char *image, size_t room, int device, bool keeps) {
    *ptx = (struct ptx){.identity = ++identities};
    const char *const *linked = fatbins_linked(image);
    if (linked && of_linked(ptx, linked, device)) return true;
    ptx_forget(ptx);
    ptx->identity = identities;
    const char *fatbin = fatbin_of(image);
    size_t fatbin_room = fatbin == image ? room : SIZE_MAX;
    bool found = fatbin ? of_fatbin(ptx, fatbin, fatbin_room, device) : of_image(ptx, image, room);
    if (found && !keeps && !ptx->own) {
        ptx->own = malloc(ptx->bytes + 1);
        found = ptx->own != NULL;
        if (found) {
            memcpy(ptx->own, ptx->content, ptx->bytes);
            ptx->own[ptx->bytes] = 0;
        }
        ptx->content = ptx->own;
    }
    if (!found) ptx_forget(ptx);
    return found;
}

void ptx_forget(struct ptx *ptx) {
    free(ptx->own);
    *ptx = (struct ptx){0};
}
