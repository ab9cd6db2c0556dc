// Loads, stores and reductions of surfaces (PTX ISA, "Surface Instructions").
#include <string.h>

#include "kernels/checks.h"
#include "kernels/formats.h"
#include "kernels/texture.h"
#include "kernels/watch.h"
#include "machine/hidden.h"
#include "memory/shadow.h"

enum action { LOAD, STORE, ADD, MINIMUM, MAXIMUM, AND, OR };
enum mode { TRAP, CLAMP, ZERO };

// What an instruction says of itself; quiesce.simulator.kernels.translation.instructions.textures has the same numbers.
struct operation {
    unsigned axes, bytes, count;  // bytes of each of so many elements
    enum mode mode;
    enum action action;
    bool is_layered, is_formatted, is_signed;
};

static struct operation read_operation(uint32_t word) {
    return (struct operation){
        .axes = word & GEOMETRY_AXES,
        .bytes = word >> 6 & 0x1f,
        .count = word >> 20,
        .mode = (enum mode)(word >> 4 & 3),
        .action = (enum action)(word >> 11 & 0xf),
        .is_layered = word & GEOMETRY_IS_LAYERED,
        .is_formatted = word >> 15 & 1,
        .is_signed = word >> 16 & 1,
    };
}

// -- where -----------------------------------------------------------------------------------------------------------

// Brings a coordinate inside, or says that it is outside. Coordinates are signed.
static bool keep_inside(int64_t *coordinate, int64_t size, enum mode mode) {
    if (*coordinate >= 0 && *coordinate < size) return true;
    if (mode == CLAMP) *coordinate = *coordinate < 0 || size <= 0 ? 0 : size - 1;
    return mode == CLAMP && size > 0;
}

// The address of the bytes that are meant; 0: they are outside. The first coordinate counts bytes, or texels where the
// operation knows the format.
static uint64_t find_bytes(const struct image *image, const struct operation *operation,
                           const struct texel_area *area) {
    unsigned texel = texel_bytes(image), bytes = operation->is_formatted ? texel : operation->bytes * operation->count;
    int64_t x = (int32_t)area->coordinates[0], y = operation->axes > 1 ? (int32_t)area->coordinates[1] : 0;
    int64_t z = operation->axes > 2 ? (int32_t)area->coordinates[2] : 0;
    int64_t row = (int64_t)image->width * texel;
    if (operation->is_formatted) x *= texel;
    if (operation->mode == CLAMP && x > row - bytes) x = row - bytes;  // the last place that is as large
    if (!keep_inside(&x, row - bytes + 1, operation->mode)) return 0;
    if (!keep_inside(&y, image->height, operation->mode) || !keep_inside(&z, image->depth, operation->mode)) return 0;
    int64_t layer = operation->is_layered ? area->layer : 0, layers = image->layers ? image->layers : 1;
    if (!keep_inside(&layer, layers, operation->mode)) return 0;
    struct texel first = {0, y, operation->is_layered ? layer : z};
    return texel_address(image, first) + (uint64_t)x;
}

static _Noreturn void trap(const struct texel_user *user, const struct image *image, const struct operation *operation,
                           const struct texel_area *area) {
    struct wrong_access wrong = {.seen = SEEN_KERNEL_OUTSIDE_SURFACE,
                                 .address = (uint64_t)(int32_t)area->coordinates[0],
                                 .row = operation->axes > 1 ? (int32_t)area->coordinates[1] : 0,
                                 .surface_bytes = image->width * texel_bytes(image),
                                 .bytes = operation->bytes * operation->count,
                                 .writes = operation->action != LOAD,
                                 .site = user->site,
                                 .thread = user->thread};
    if (operation->is_formatted) wrong.address *= texel_bytes(image);
    memcpy(wrong.block, user->context->block_index, sizeof wrong.block);
    memcpy(wrong.threads, user->context->block, sizeof wrong.threads);
    if (user->context->checks) checks_see(&wrong);
    watch_leave(ENDED_BY_TRAP);
}

// Rows begin at multiples of a texel, so that an access which is wider is judged texel by texel.
static unsigned char *find_place(const struct texel_user *user, const struct image *image, uint64_t address,
                                 unsigned bytes, bool writes) {
    unsigned step = bytes < texel_bytes(image) ? bytes : texel_bytes(image);
    unsigned char *first = NULL;
    for (unsigned at = 0; at < bytes; at += step) {
        unsigned char *place = user->judge.place(&user->judge, address + at, step, writes);
        if (place != (unsigned char *)address + at) return place;
        if (!at) first = place;
    }
    return first;
}

// -- what ------------------------------------------------------------------------------------------------------------

static int64_t reduced(const struct operation *operation, int64_t before, int64_t value, bool is_signed) {
    bool is_less = is_signed ? value < before : (uint64_t)value < (uint64_t)before;
    switch (operation->action) {
        case ADD: return (int64_t)((uint64_t)before + (uint64_t)value);
        case MINIMUM: return is_less ? value : before;
        case MAXIMUM: return is_less ? before : value;
        case AND: return before & value;
        default: return before | value;
    }
}

static int64_t extend(uint64_t bits, unsigned bytes, bool is_signed) {
    unsigned unused = 64 - 8 * bytes;
    return is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)(bits << unused >> unused);
}

static void reduce(const struct image *image, const struct operation *operation, unsigned char *to,
                   const struct texel_area *area) {
    uint64_t before = 0, value = 0;
    bool is_signed = operation->is_formatted ? image->kind == TEXELS_SIGNED : operation->is_signed;
    memcpy(&before, to, operation->bytes);
    memcpy(&value, area->content.bytes, operation->bytes);
    int64_t after = reduced(operation, extend(before, operation->bytes, is_signed),
                            extend(value, operation->bytes, is_signed), is_signed);
    memcpy(to, &after, operation->bytes);
}

// Elements become channels of the surface's format: integers that are too large become the largest there is.
static void write_channels(const struct image *image, const struct operation *operation, unsigned char *to,
                           const struct texel_area *area) {
    for (unsigned i = 0; i < image->channels; i++) {
        uint32_t word = i < operation->count ? area->content.words[i] : 0;
        int64_t largest = (1ll << (8 * image->channel_bytes - (image->kind == TEXELS_SIGNED))) - 1;
        int64_t number = image->kind == TEXELS_SIGNED ? (int32_t)word : (int64_t)word;
        if (image->kind == TEXELS_FLOAT)
            number = image->channel_bytes == 4 ? word : format_narrow(texel_float(word), 5, 10, ROUND_NEAREST_EVEN);
        else if (number > largest)
            number = largest;
        else if (image->kind == TEXELS_SIGNED && number < -largest - 1)
            number = -largest - 1;
        memcpy(to + i * image->channel_bytes, &number, image->channel_bytes);
    }
}

void quiesce_kernel_surface(struct kernel_context *context, uint64_t handle, struct texel_area *area, uint32_t word,
                            uint32_t site, uint32_t thread) {
    struct operation operation = read_operation(word);
    struct texel_user user;
    const struct texture *surface = texture_use(&user, context, handle, true, site, thread);
    const struct image *image = surface ? &surface->image : NULL;
    uint64_t address = image ? find_bytes(image, &operation, area) : 0;
    if (image && !address && operation.mode == TRAP) trap(&user, image, &operation, area);
    if (!address) {
        if (operation.action == LOAD) memset(&area->content, 0, sizeof area->content);
        return;
    }
    unsigned bytes = operation.is_formatted ? texel_bytes(image) : operation.bytes * operation.count;
    unsigned char *place = find_place(&user, image, address, bytes, operation.action != LOAD);
    switch (operation.action) {
        case LOAD: memcpy(area->content.bytes, place, bytes); break;
        case STORE:
            if (operation.is_formatted)
                write_channels(image, &operation, place, area);
            else
                memcpy(place, area->content.bytes, bytes);
            break;
        default: reduce(image, &operation, place, area);
    }
    if (operation.action != LOAD && shadows_are_kept) shadow_write((uint64_t)place, bytes);
}
