// The image of a module: an ELF file (CUDA's cubin, HIP's code object, alone or in a bundle), what was linked of such,
// or PTX text. What it says of its variables, and how long it is. Others, as compressed ones, can't be looked through.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/status.h"

struct described {
    const char *name;
    size_t name_bytes;
    uint64_t size_bytes;
    const void *content;  // what it holds at first, as long as it; NULL: zeros
    bool unclear;         // it holds something else, which can't be told from the image
    bool is_constant;
};

// Called for each variable, in the image's order; false ends the reading.
typedef bool add_variable(void *context, const struct described *variable);

enum { IMAGE_HEADER_BYTES = 64 };  // that can be read of any image, however short it is

// How long an image is that says so itself, or 0: it can't be looked through. What is longer than `room` was cut off.
size_t image_length(const char *image, size_t room);

// Reads a file into memory, with as many zeros behind it as a header is long. It becomes the caller's.
enum status image_from_file(const char *path, char **content, size_t *bytes);

// Reads the variables of an image of that length; text ends with a NUL. False: `add` said so, or memory ran out.
bool image_read(const char *image, size_t bytes, add_variable *add, void *context);

// The parts of that, by format. A linked image has its inputs in sections of their own type.
enum { IMAGE_LEVELS = 4 };
#define SECTION_OF_INPUT 0x80005155u
bool image_read_level(const char *image, size_t bytes, add_variable *add, void *context, unsigned levels);
bool image_read_elf(const char *image, size_t bytes, add_variable *add, void *context, unsigned levels);
bool image_read_ptx(const char *text, add_variable *add, void *context);

// Calls `see` for each input of what was linked here; behind its bytes is a NUL. False: `see` said so.
typedef bool see_input(void *context, const char *input, size_t bytes);
bool image_inputs(const char *image, size_t bytes, see_input *see, void *context);

// ".target sm_75" of PTX; 0: it says nothing of the kind.
int image_target(const char *text, size_t room);

// The architectures that code was compiled for: the virtual one of its PTX and that of its binary, 75 for sm_75.
struct architectures {
    int ptx, binary;  // 0: not known
};

// Those of the code that a device of CUDA would load from an image; `device` is its own. What is compiled when it is
// loaded has the device's binary. Of several, as in a fatbin, it is "the best": a binary for the device's major version
// and at most its minor, else the highest PTX up to it (CUDA C++ Programming Guide, "Application Compatibility"). Where
// none fits, a device refuses to load it; here the lowest one counts, for nothing runs.
struct architectures image_architectures(const char *image, size_t room, int device);
struct architectures image_elf_architectures(const char *image, size_t bytes, int device);

// A copy of the code within an image, a fatbin or what a compiler wrapped around one, that can be looked through, and
// how long it is; a NUL is behind it. Of several it is the best for the device, of those that are not compressed before
// others. It becomes the caller's. NULL: there is none, or none that can be unpacked.
char *image_code(const char *image, int device, size_t *bytes);

// A copy of the PTX within a fatbin, unpacked, the best for the device; the caller's. NULL: there is none.
char *image_ptx(const char *fatbin, size_t room, int device, size_t *bytes);

// How long a bundle of code objects is, within `room`, and the first of these; 0: it is none, damaged, or compressed.
size_t image_bundle(const char *image, size_t room, const char **code, size_t *code_bytes);
