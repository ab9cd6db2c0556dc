#include "code/registration.h"

#include <stdlib.h>

static unsigned long unregistered;

// They are never moved or taken back, for threads ask while libraries are loaded. The newest is found first: another
// library may lie where one was that is gone.
enum { PIECE = 500 };
static struct piece {
    struct piece *older;
    unsigned count;
    struct {
        const void *function;
        const struct registered_binary *binary;
    } entries[PIECE];
} *newest;

struct registered_binary *binary_register(const void *fatbin) {
    struct registered_binary *made = calloc(1, sizeof *made);
    if (made) made->fatbin = fatbin;
    return made;
}

void binary_unregister(struct registered_binary *binary) {
    if (!binary) return;
    binary->fatbin = NULL;
    __atomic_add_fetch(&unregistered, 1, __ATOMIC_RELEASE);
}

unsigned long binaries_unregistered(void) { return __atomic_load_n(&unregistered, __ATOMIC_ACQUIRE); }

void function_register(struct registered_binary *binary, const void *function) {
    struct piece *piece = newest;
    if (!piece || piece->count == PIECE) {
        piece = malloc(sizeof *piece);
        if (!piece) return;  // then nothing is known of it
        piece->older = newest;
        piece->count = 0;
        __atomic_store_n(&newest, piece, __ATOMIC_RELEASE);
    }
    piece->entries[piece->count].function = function;
    piece->entries[piece->count].binary = binary;
    __atomic_store_n(&piece->count, piece->count + 1, __ATOMIC_RELEASE);
}

struct architectures function_architectures(const void *function, int device) {
    for (const struct piece *each = __atomic_load_n(&newest, __ATOMIC_ACQUIRE); each; each = each->older)
        for (unsigned i = __atomic_load_n(&each->count, __ATOMIC_ACQUIRE); i--;) {
            const struct registered_binary *binary = each->entries[i].binary;
            if (each->entries[i].function != function || !binary || !binary->fatbin) continue;
            return image_architectures(binary->fatbin, SIZE_MAX, device);
        }
    return (struct architectures){0, 0};
}
