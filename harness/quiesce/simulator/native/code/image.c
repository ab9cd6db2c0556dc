#include "code/image.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_elf(const char *image) { return !strncmp(image, ELFMAG, SELFMAG) && image[EI_CLASS] == ELFCLASS64; }

size_t image_length(const char *image, size_t room) {
    const char *code;
    size_t code_bytes, bundle = image_bundle(image, room, &code, &code_bytes);
    if (bundle) return bundle;
    if (is_elf(image)) {
        Elf64_Ehdr header;
        memcpy(&header, image, sizeof header);
        size_t sections = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
        size_t segments = header.e_phoff + (size_t)header.e_phnum * header.e_phentsize;
        return sections > segments ? sections : segments;
    }
    bool is_text = *image == '/' || *image == '.' || isspace((unsigned char)*image);
    return is_text ? strnlen(image, room) : 0;  // PTX begins with a comment or a directive, and ends with a NUL
}

// One call reads less than 2 GiB (read(2), NOTES).
static bool read_whole(int file, char *content, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = read(file, content + done, bytes - done);
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

enum status image_from_file(const char *path, char **content, size_t *bytes) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0) return FILE_NOT_FOUND;
    enum status status = FILE_NOT_FOUND;
    if (fstat(file, &about) == 0 && about.st_size > 0) {
        *bytes = (size_t)about.st_size;
        *content = calloc(1, *bytes + IMAGE_HEADER_BYTES);
        status = !*content ? OUT_OF_MEMORY : read_whole(file, *content, *bytes) ? OK : INVALID_IMAGE;
        if (status) free(*content);
    }
    close(file);
    return status;
}

bool image_read_level(const char *image, size_t bytes, add_variable *add, void *context, unsigned levels) {
    const char *code;
    size_t code_bytes;
    if (!levels) return true;
    if (image_bundle(image, bytes, &code, &code_bytes)) return image_read_elf(code, code_bytes, add, context, levels);
    if (bytes > sizeof(Elf64_Ehdr) && is_elf(image)) return image_read_elf(image, bytes, add, context, levels);
    return image_read_ptx(image, add, context);
}

bool image_read(const char *image, size_t bytes, add_variable *add, void *context) {
    return image_read_level(image, bytes, add, context, IMAGE_LEVELS);
}
