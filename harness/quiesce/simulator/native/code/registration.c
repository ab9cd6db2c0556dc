#include "code/registration.h"

#include <stdlib.h>
#include <string.h>

#include "code/variable.h"
#include "machine/device.h"
#include "machine/settings.h"

static unsigned long unregistered;

// They are never moved or taken back, for threads ask while libraries are loaded. The newest is found first: another
// library may lie where one was that is gone.
enum { PIECE = 500 };
static struct piece {
    struct piece *older;
    unsigned count;
    struct {
        const void *function;
        const char *name;
        struct registered_binary *binary;
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

void function_register(struct registered_binary *binary, const void *function, const char *name) {
    struct piece *piece = newest;
    if (!piece || piece->count == PIECE) {
        piece = malloc(sizeof *piece);
        if (!piece) return;  // then nothing is known of it
        piece->older = newest;
        piece->count = 0;
        __atomic_store_n(&newest, piece, __ATOMIC_RELEASE);
    }
    piece->entries[piece->count].function = function;
    piece->entries[piece->count].name = name;
    piece->entries[piece->count].binary = binary;
    __atomic_store_n(&piece->count, piece->count + 1, __ATOMIC_RELEASE);
}

struct registered_binary *function_binary(const void *function, const char **name) {
    for (const struct piece *each = __atomic_load_n(&newest, __ATOMIC_ACQUIRE); each; each = each->older)
        for (unsigned i = __atomic_load_n(&each->count, __ATOMIC_ACQUIRE); i--;) {
            struct registered_binary *binary = each->entries[i].binary;
            if (each->entries[i].function != function || !binary || !binary->fatbin) continue;
            *name = each->entries[i].name;
            return binary;
        }
    return NULL;
}

// It stays where it is for as long as the binary is registered.
const struct ptx *binary_ptx(struct registered_binary *binary, int device) {
    if (!binary->is_searched) ptx_find(&binary->ptx, binary->fatbin, SIZE_MAX, device, true);
    binary->is_searched = true;
    return binary->ptx.content ? &binary->ptx : NULL;
}

// Where kernels run, it is their PTX that counts.
struct architectures function_architectures(const void *function, int device) {
    const char *name;
    struct registered_binary *binary = function_binary(function, &name);
    if (!binary) return (struct architectures){0, 0};
    const struct ptx *ptx = settings.kernels ? binary_ptx(binary, device) : NULL;
    if (ptx) return (struct architectures){ptx->architecture, device};
    return image_architectures(binary->fatbin, SIZE_MAX, device);
}

struct variables *binary_variables(struct registered_binary *binary) {
    if (binary->is_read) return binary->variables;
    binary->is_read = true;
    if (!binary->fatbin) return NULL;
    const struct ptx *ptx = settings.kernels ? binary_ptx(binary, device_capability()) : NULL;
    if (ptx) binary->variables = variables_read_ptx(ptx);
    if (binary->variables) return binary->variables;
    size_t bytes;
    char *code = image_code(binary->fatbin, device_capability(), &bytes);
    if (code) binary->variables = variables_read(code, bytes);
    free(code);
    return binary->variables;
}
