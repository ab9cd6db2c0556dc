#include "code/image_packed.h"

#include <dlfcn.h>
#include <string.h>

struct input {
    const unsigned char *at, *end;
};

// A length of LZ4: four bits, and where they are all set, bytes up to one that is not 255.
static bool read_length(struct input *input, size_t *length) {
    if (*length != 15) return true;
    unsigned char more;
    do {
        if (input->at == input->end) return false;
        more = *input->at++;
        *length += more;
    } while (more == 255);
    return true;
}

// One block of LZ4 (lz4_Block_format.md): literals and copies of what came before, up to literals alone.
static bool unpack_lz4(struct input input, char *to, size_t room) {
    enum { SHORTEST_COPY = 4 };
    size_t done = 0;
    while (input.at < input.end) {
        unsigned char token = *input.at++;
        size_t literals = token >> 4, copied = token & 15;
        if (!read_length(&input, &literals)) return false;
        if (literals > (size_t)(input.end - input.at) || literals > room - done) return false;
        memcpy(to + done, input.at, literals);
        input.at += literals;
        done += literals;
        if (input.at == input.end) break;
        if (input.end - input.at < 2) return false;
        size_t distance = input.at[0] | (size_t)input.at[1] << 8;
        input.at += 2;
        if (!read_length(&input, &copied)) return false;
        copied += SHORTEST_COPY;
        if (!distance || distance > done || copied > room - done) return false;
        for (; copied; copied--, done++) to[done] = to[done - distance];  // it may overlap what it writes
    }
    return done == room;
}

// The system's library is asked, which hardly any system lacks: a reader of its own would be as long as all of images.
static bool unpack_zstandard(const char *from, size_t bytes, char *to, size_t room) {
    void *library = dlopen("libzstd.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library) return false;
    size_t (*unpack)(void *, size_t, const void *, size_t);
    *(void **)&unpack = dlsym(library, "ZSTD_decompress");
    bool whole = unpack && unpack(to, room, from, bytes) == room;
    dlclose(library);
    return whole;
}

bool image_unpack(uint64_t options, const char *from, size_t bytes, char *to, size_t room) {
    const unsigned char *start = (const unsigned char *)from;
    if (options & PACKED_ZSTANDARD) return unpack_zstandard(from, bytes, to, room);
    return options & PACKED_LZ4 && unpack_lz4((struct input){start, start + bytes}, to, room);
}
