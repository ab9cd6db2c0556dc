// What the image of a module says of its variables: an ELF file (CUDA's cubin, HIP's code object, alone or in a
// bundle), or PTX text.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct described {
    const char *name;
    size_t name_bytes;
    uint64_t size_bytes;
    const void *content;  // what it holds at first, as long as it; NULL: zeros
    bool unclear;         // it holds something else, which can't be told from the text
};

// Called for each variable, in the image's order; false ends the reading.
typedef bool add_variable(void *context, const struct described *variable);

// How long a bundle of code objects is, within `room`, and the first of these; 0: it is none, damaged, or compressed.
size_t image_bundle(const char *image, size_t room, const char **code, size_t *code_bytes);

// Both return false where `add` did, or memory ran out.
bool image_read_elf(const char *image, size_t bytes, add_variable *add, void *context);
bool image_read_ptx(const char *text, add_variable *add, void *context);
