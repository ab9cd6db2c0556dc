// The PTX of an image, which is what can be compiled for the processor: of text itself, of the parts of a fatbin, of
// what was linked here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How a part of a fatbin is packed, as its flags say.
enum { PACKED_PLAIN, PACKED_LZ4, PACKED_ZSTD };

struct ptx {
    const char *content;
    size_t bytes;
    char *own;  // the same where it was copied or put together, else NULL
    int packing;
    uint64_t plain_bytes;  // when it is unpacked
    int architecture;      // 0: not known
    uint64_t identity;     // no other one has it in this process
};

// The best for a device: of the architectures up to its own the highest, else the lowest. `keeps` says that the image
// stays where it is; else the content is copied. False: there is none, or no memory is left.
bool ptx_find(struct ptx *ptx, const char *image, size_t room, int device, bool keeps);
void ptx_forget(struct ptx *ptx);

// Whether a text is that of libcudadevrt.a, which nobody else's names are in.
bool ptx_is_of_device_runtime(const char *text);
