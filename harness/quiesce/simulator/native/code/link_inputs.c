#include "code/link_inputs.h"

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/fatbin.h"
#include "code/image.h"
#include "code/ptx.h"
#include "machine/device.h"
#include "machine/settings.h"

enum { MACHINE_CUDA = 190, MACHINE_AMDGPU = 224, INPUTS_MAX = 4096 };

// Whether it begins like what the client says it is. Objects and libraries keep device code in sections of their own,
// which may be compressed, as a fat binary's parts are. Where kernels run, NVRTC gives PTX in place of a cubin.
static enum status check(int kind, const char *content, size_t bytes) {
    size_t length = image_length(content, bytes);
    bool is_elf = !strncmp(content, ELFMAG, SELFMAG);
    if (kind == LINK_CUBIN && settings.kernels && !is_elf && length) return OK;
    if (kind == LINK_CUBIN && (!is_elf || length > bytes || bytes < sizeof(Elf64_Ehdr))) return INVALID_IMAGE;
    return kind == LINK_PTX && (is_elf || !length) ? INVALID_PTX : OK;
}

// Takes `content` over, which has zeros behind its bytes.
static enum status take(struct link_inputs *inputs, char *content, size_t bytes) {
    struct link_piece *grown = NULL;
    if (inputs->count < INPUTS_MAX) grown = realloc(inputs->pieces, (inputs->count + 1) * sizeof *grown);
    if (!grown) {
        free(content);
        return OUT_OF_MEMORY;
    }
    inputs->pieces = grown;
    inputs->pieces[inputs->count++] = (struct link_piece){content, bytes};
    return OK;
}

// Takes the PTX of each fatbin in an object, a library or a fatbin itself.
static enum status take_ptx(struct link_inputs *inputs, const char *content, size_t bytes) {
    enum { ALIGNMENT = 4, HEADER_BYTES = 16 };
    for (size_t at = 0; at + HEADER_BYTES <= bytes; at += ALIGNMENT) {
        uint32_t magic;
        memcpy(&magic, content + at, sizeof magic);
        if (magic != FATBIN_MAGIC) continue;
        size_t text_bytes;
        char *text = image_ptx(content + at, bytes - at, device_capability(), &text_bytes);
        bool is_wanted = text && !ptx_is_of_device_runtime(text);
        if (!is_wanted) free(text);
        enum status status = is_wanted ? take(inputs, text, text_bytes) : OK;
        if (status) return status;
    }
    return OK;
}

static enum status add(struct link_inputs *inputs, int kind, char *content, size_t bytes) {
    enum status status = check(kind, content, bytes);
    if (kind == LINK_CUBIN || kind == LINK_PTX) {
        if (!status) return take(inputs, content, bytes);
    } else {
        unsigned before = inputs->count;
        if (settings.flavour == FLAVOUR_CUDA) status = take_ptx(inputs, content, bytes);
        inputs->opaque |= inputs->count == before;
    }
    free(content);
    return status;
}

enum status link_inputs_add(struct link_inputs *inputs, int kind, const void *content, size_t bytes) {
    char *copy = calloc(1, bytes + IMAGE_HEADER_BYTES);
    return copy ? add(inputs, kind, memcpy(copy, content, bytes), bytes) : OUT_OF_MEMORY;
}

enum status link_inputs_add_file(struct link_inputs *inputs, int kind, const char *path) {
    char *content;
    size_t bytes;
    enum status status = image_from_file(path, &content, &bytes);
    return status ? status : add(inputs, kind, content, bytes);
}

void link_inputs_free(struct link_inputs *inputs) {
    for (unsigned i = 0; i < inputs->count; i++) free(inputs->pieces[i].content);
    free(inputs->pieces);
    *inputs = (struct link_inputs){0};
}

// -- the image -------------------------------------------------------------------------------------------------------

// What it is made of can't be looked through, and so can't it: no name is denied.
static enum status write_opaque(char **image, size_t *bytes) {
    static const char TEXT[] = "linked on a simulated runtime, of inputs that can't be looked through";
    *bytes = sizeof TEXT;
    *image = malloc(sizeof TEXT);
    if (!*image) return OUT_OF_MEMORY;
    memcpy(*image, TEXT, sizeof TEXT);
    return OK;
}

static bool has_text(const struct link_inputs *inputs) {
    for (unsigned i = 0; i < inputs->count; i++)
        if (strncmp(inputs->pieces[i].content, ELFMAG, SELFMAG)) return true;
    return false;
}

// An ELF file with a section for each input. Beside PTX, which runs, others don't count: as CUDA's library of functions
// for kernels that launch kernels, which nearly nobody calls.
enum status link_inputs_write(const struct link_inputs *inputs, char **image, size_t *image_bytes) {
    if (inputs->opaque && !(settings.kernels && has_text(inputs))) return write_opaque(image, image_bytes);
    size_t bytes = sizeof(Elf64_Ehdr);
    for (unsigned i = 0; i < inputs->count; i++) bytes += inputs->pieces[i].bytes + 1;
    size_t headers = (bytes + 7) / 8 * 8;
    *image_bytes = headers + (inputs->count + 1) * sizeof(Elf64_Shdr);
    *image = calloc(1, *image_bytes);
    if (!*image) return OUT_OF_MEMORY;
    Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_EXEC,
                         .e_machine = settings.flavour == FLAVOUR_HIP ? MACHINE_AMDGPU : MACHINE_CUDA,
                         .e_version = EV_CURRENT,
                         .e_shoff = headers,
                         .e_ehsize = sizeof header,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = (Elf64_Half)(inputs->count + 1)};
    memcpy(*image, &header, sizeof header);
    size_t at = sizeof header;
    for (unsigned i = 0; i < inputs->count; i++) {
        const struct link_piece *piece = &inputs->pieces[i];
        Elf64_Shdr section = {.sh_type = SECTION_OF_INPUT, .sh_offset = at, .sh_size = piece->bytes + 1};
        memcpy(*image + at, piece->content, piece->bytes);
        memcpy(*image + headers + (i + 1) * sizeof section, &section, sizeof section);
        at += piece->bytes + 1;
    }
    return OK;
}
