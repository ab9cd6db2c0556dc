// Reads damaged images and damaged objects of kernels, under the compiler's sanitizers. Usage: code_reader SEED COUNT
// FILE... Each input is a copy of a file with a few changes, in memory of exactly its length and the zeros that the
// runtime leaves behind a file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "code/fatbin.h"
#include "code/image.h"
#include "kernels/functions.h"
#include "kernels/object.h"

enum { FILES_MAX = 64, DEVICE = 80 };

static uint64_t state;

static uint64_t any(uint64_t below) {  // xorshift*
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull % below;
}

static void damage(char *content, size_t *bytes) {
    static const uint64_t NUMBERS[] = {0,          1,           7,          255,        256,         65535,
                                       0x7fffffff, 0x80000000,  0xffffffff, 1ull << 32, 1ull << 62,  1ull << 63,
                                       ~0ull,      ~0ull - 7,   ~0ull - 63, 1ull << 20};
    static const unsigned WIDTHS[] = {1, 2, 4, 8};
    for (uint64_t changes = any(8) + 1; changes; changes--) {
        size_t place = any(any(2) && *bytes > 512 ? 512 : *bytes);
        if (any(12) == 0) {
            *bytes = place ? place : 1;
            continue;
        }
        unsigned width = WIDTHS[any(4)];
        if (any(4)) place -= place % width;
        if (place + width > *bytes) continue;
        uint64_t number = any(3) ? NUMBERS[any(sizeof NUMBERS / sizeof *NUMBERS)] : any(~0ull);
        memcpy(content + place, &number, width);
    }
}

static bool sum_variable(void *context, const struct described *variable) {
    uint64_t *sum = context;
    for (size_t i = 0; i < variable->name_bytes; i++) *sum += (unsigned char)variable->name[i];
    const unsigned char *content = variable->content;
    for (uint64_t i = 0; content && i < variable->size_bytes; i++) *sum += content[i];
    return true;
}

static bool sum_input(void *context, const char *input, size_t bytes) {
    *(uint64_t *)context += bytes ? (unsigned char)input[bytes - 1] : 0;
    return true;
}

// What the runtime does with an image of a module whose length it knows.
static void read_image(const char *image, size_t room) {
    uint64_t sum = 0;
    size_t unpacked;
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    if (magic == WRAPPER_MAGIC || magic == HIP_WRAPPER_MAGIC) return;  // holds addresses of the program
    size_t bytes = image_length(image, room);
    if (bytes && bytes <= room) {
        image_read(image, bytes, sum_variable, &sum);
        image_inputs(image, bytes, sum_input, &sum);
    }
    image_architectures(image, room, DEVICE);
    free(image_ptx(image, room, DEVICE, &unpacked));
}

static void read_object(const char *content, size_t bytes) {
    char reason[OBJECT_REASON_BYTES];
    struct object object;
    if (object_load(&object, content, bytes, reason)) object_unload(&object);
    else if (!memchr(reason, 0, sizeof reason) || !*reason) abort();
}

int main(int count, char **words) {
    static char *contents[FILES_MAX];
    static size_t lengths[FILES_MAX];
    unsigned files = 0;
    for (int i = 3; i < count && files < FILES_MAX; i++, files++)
        if (image_from_file(words[i], &contents[files], &lengths[files])) return 2;
    uint64_t seed = strtoull(words[1], NULL, 0), inputs = strtoull(words[2], NULL, 0);
    for (uint64_t number = 0; number < inputs; number++) {
        state = (seed + number) * 0x9e3779b97f4a7c15ull + 1;
        unsigned chosen = (unsigned)any(files);
        size_t bytes = lengths[chosen];
        char *copy = malloc(bytes);
        memcpy(copy, contents[chosen], bytes);
        if (any(10)) damage(copy, &bytes);
        char *image = calloc(1, bytes + IMAGE_HEADER_BYTES);
        memcpy(image, copy, bytes);
        free(copy);
        fprintf(stderr, "\r%llu", (unsigned long long)(seed + number));
        read_image(image, bytes);
        char *object = memcpy(malloc(bytes), image, bytes);
        read_object(object, bytes);
        free(object);
        free(image);
    }
    fprintf(stderr, "\r");
    printf("%llu inputs, 0 wrong\n", (unsigned long long)inputs);
    return 0;
}

// The one part of the runtime that objects are loaded with: a function for every name, which is never called.
void (*kernel_function_find(const char *name))(void) { return *name == '_' ? NULL : abort; }
