#include "code/link.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "code/image.h"
#include "ledger/handle.h"
#include "machine/device.h"
#include "machine/settings.h"

enum { MACHINE_CUDA = 190, MACHINE_AMDGPU = 224, INPUTS_MAX = 4096 };

struct linker {
    uint64_t serial;
    struct input {
        char *content;  // and a NUL behind
        size_t bytes;
    } *inputs;
    unsigned count;
    bool opaque;  // one of them can't be looked through
    char *image;  // NULL: it is not complete
    size_t image_bytes;
};

static struct linker *find(uint64_t handle) { return handle_find(THING_LINKER, handle); }

enum status link_create(uint64_t *handle) {
    struct linker *linker = calloc(1, sizeof *linker);
    *handle = linker ? handle_make(THING_LINKER, linker, device_current(), &linker->serial, false) : 0;
    if (*handle) return OK;
    free(linker);
    return OUT_OF_MEMORY;
}

enum status link_destroy(uint64_t handle) {
    struct linker *linker = find(handle);
    if (!linker) return INVALID_HANDLE;
    handle_drop(handle);
    for (unsigned i = 0; i < linker->count; i++) free(linker->inputs[i].content);
    free(linker->inputs);
    free(linker->image);
    free(linker);
    return OK;
}

// -- inputs ----------------------------------------------------------------------------------------------------------

// Whether it begins like what the client says it is. Objects and libraries keep device code in sections of their own,
// which may be compressed, as a fat binary's parts are.
static enum status check(int kind, const char *content, size_t bytes) {
    size_t length = image_length(content, bytes);
    bool is_elf = !strncmp(content, ELFMAG, SELFMAG);
    if (kind == LINK_CUBIN && (!is_elf || length > bytes || bytes < sizeof(Elf64_Ehdr))) return INVALID_IMAGE;
    return kind == LINK_PTX && (is_elf || !length) ? INVALID_PTX : OK;
}

static bool is_kind(int kind) {
    if (settings.flavour == FLAVOUR_HIP) return kind >= LINK_BITCODE && kind <= LINK_SPIRV;
    return kind >= LINK_CUBIN && kind <= LINK_NVVM;
}

// Takes `content` over, which has zeros behind its bytes.
static enum status take(struct linker *linker, int kind, char *content, size_t bytes) {
    enum status status = check(kind, content, bytes);
    struct input *grown = NULL;
    if (!status && linker->count < INPUTS_MAX)
        grown = realloc(linker->inputs, (linker->count + 1) * sizeof *linker->inputs);
    if (!grown) {
        free(content);
        return status ? status : OUT_OF_MEMORY;
    }
    linker->inputs = grown;
    linker->inputs[linker->count++] = (struct input){content, bytes};
    linker->opaque |= kind != LINK_CUBIN && kind != LINK_PTX;
    return OK;
}

enum status link_add(uint64_t handle, int kind, const void *content, size_t bytes) {
    struct linker *linker = find(handle);
    if (!linker) return INVALID_HANDLE;
    if (!content || !bytes || linker->image || !is_kind(kind)) return INVALID_VALUE;
    char *copy = calloc(1, bytes + IMAGE_HEADER_BYTES);
    return copy ? take(linker, kind, memcpy(copy, content, bytes), bytes) : OUT_OF_MEMORY;
}

enum status link_add_file(uint64_t handle, int kind, const char *path) {
    struct linker *linker = find(handle);
    if (!linker) return INVALID_HANDLE;
    if (!path || linker->image || !is_kind(kind)) return INVALID_VALUE;
    char *content;
    size_t bytes;
    enum status status = image_from_file(path, &content, &bytes);
    return status ? status : take(linker, kind, content, bytes);
}

// -- the image -------------------------------------------------------------------------------------------------------

// An ELF file with a section for each input.
static enum status write_image(struct linker *linker) {
    size_t bytes = sizeof(Elf64_Ehdr);
    for (unsigned i = 0; i < linker->count; i++) bytes += linker->inputs[i].bytes + 1;
    size_t headers = (bytes + 7) / 8 * 8;
    linker->image_bytes = headers + (linker->count + 1) * sizeof(Elf64_Shdr);
    linker->image = calloc(1, linker->image_bytes);
    if (!linker->image) return OUT_OF_MEMORY;
    Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_EXEC,
                         .e_machine = settings.flavour == FLAVOUR_HIP ? MACHINE_AMDGPU : MACHINE_CUDA,
                         .e_version = EV_CURRENT,
                         .e_shoff = headers,
                         .e_ehsize = sizeof header,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = (Elf64_Half)(linker->count + 1)};
    memcpy(linker->image, &header, sizeof header);
    size_t at = sizeof header;
    for (unsigned i = 0; i < linker->count; i++) {
        const struct input *input = &linker->inputs[i];
        Elf64_Shdr section = {.sh_type = SECTION_OF_INPUT, .sh_offset = at, .sh_size = input->bytes + 1};
        memcpy(linker->image + at, input->content, input->bytes);
        memcpy(linker->image + headers + (i + 1) * sizeof section, &section, sizeof section);
        at += input->bytes + 1;
    }
    return OK;
}

// What it is made of can't be looked through, and so can't it: no name is denied.
static enum status write_opaque(struct linker *linker) {
    static const char TEXT[] = "linked on a simulated runtime, of inputs that can't be looked through";
    linker->image_bytes = sizeof TEXT;
    linker->image = malloc(sizeof TEXT);
    if (!linker->image) return OUT_OF_MEMORY;
    memcpy(linker->image, TEXT, sizeof TEXT);
    return OK;
}

enum status link_complete(uint64_t handle, void **image, size_t *bytes) {
    struct linker *linker = find(handle);
    if (!linker) return INVALID_HANDLE;
    enum status status = linker->image ? OK : linker->opaque ? write_opaque(linker) : write_image(linker);
    if (status) return status;
    *image = linker->image;
    if (bytes) *bytes = linker->image_bytes;
    return OK;
}
