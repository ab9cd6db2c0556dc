#include "kernels/sampling.h"

#include "kernels/formats.h"

// Along one axis: the texel, and for one between two the share of the second in units of 1/256.
struct axis {
    int64_t first;
    uint32_t share;
};

struct fetch {
    const struct image *image;
    const struct sampler *sampler;
    const struct texel_judge *judge;
    struct axis axes[3];
    unsigned count;  // of axes
    uint32_t layer;
};

static uint32_t size_of(const struct image *image, unsigned axis) {
    return axis == 0 ? image->width : axis == 1 ? image->height : image->depth;
}

// -- coordinates -----------------------------------------------------------------------------------------------------

static double floor_of(double number) {
    double whole = (double)(int64_t)number;
    return whole > number ? whole - 1 : whole;
}

static double within(double number, double lowest, double highest) {
    if (!(number >= lowest)) return lowest;  // also what is no number
    return number > highest ? highest : number;
}

// A coordinate in texels. One that repeats comes back into the texture; any other that is far outside is cut to just
// outside, where all places are the same.
static double scale(const struct fetch *fetch, unsigned axis, float coordinate) {
    double number = coordinate, size = size_of(fetch->image, axis);
    int mode = (int)fetch->sampler->address[axis];
    if (!fetch->sampler->normalized) return within(number, -2, size + 2);
    if (mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR) {
        if (!(number > -0x1p62 && number < 0x1p62)) number = 0;
        double whole = floor_of(number), fraction = number - whole;
        number = mode == ADDRESS_MIRROR && ((int64_t)whole & 1) ? 1 - fraction : fraction;
    }
    return within(number * size, -2, size + 2);
}

// "stored in 9-bit fixed point format with 8 bits of fractional value (so 1.0 is exactly represented)"
static struct axis between(double number) {
    double below = floor_of(number - 0.5), fraction = number - 0.5 - below;
    return (struct axis){(int64_t)below, (uint32_t)(fraction * 256 + 0.5)};
}

static struct axis find_on_axis(const struct fetch *fetch, unsigned axis, uint32_t word, bool is_float, bool filters) {
    if (!is_float) return (struct axis){(int32_t)word, 0};
    double number = scale(fetch, axis, texel_float(word));
    return filters ? between(number) : (struct axis){(int64_t)floor_of(number), 0};
}

static double size_without_sign(float number) { return number < 0 ? -number : number; }

// "the face is selected by the largest magnitude": the number of the face, and where on it (from 0 to 1).
static unsigned find_face(const struct texel_area *area, float where[2]) {
    float x = texel_float(area->coordinates[0]), y = texel_float(area->coordinates[1]);
    float z = texel_float(area->coordinates[2]);
    double width = size_without_sign(x), height = size_without_sign(y), depth = size_without_sign(z);
    unsigned face;
    double s, t, m;
    if (width >= height && width >= depth) {
        face = x < 0;
        s = x < 0 ? z : -z, t = -y, m = width;
    } else if (height >= depth) {
        face = 2 + (y < 0);
        s = x, t = y < 0 ? -z : z, m = height;
    } else {
        face = 4 + (z < 0);
        s = z < 0 ? -x : x, t = -y, m = depth;
    }
    where[0] = m > 0 ? (float)((s / m + 1) / 2) : 0.5f;
    where[1] = m > 0 ? (float)((t / m + 1) / 2) : 0.5f;
    return face;
}

// -- texels ----------------------------------------------------------------------------------------------------------

// The texel that a number leads to; -1: it is outside, on the border.
static int64_t resolve(const struct fetch *fetch, unsigned axis, int64_t number) {
    int64_t size = size_of(fetch->image, axis);
    if (number >= 0 && number < size) return number;
    if (fetch->image->is_linear) return -1;
    switch (fetch->sampler->address[axis]) {
        case ADDRESS_BORDER: return -1;
        case ADDRESS_WRAP: return (number % size + size) % size;
        case ADDRESS_MIRROR: {
            int64_t period = (number % (2 * size) + 2 * size) % (2 * size);
            return period < size ? period : 2 * size - 1 - period;
        }
        default: return number < 0 ? 0 : size - 1;
    }
}

static struct channels read_border(const struct fetch *fetch) {
    struct channels border = {{0}};
    if (fetch->image->is_linear) return border;
    bool is_number = texel_is_number(fetch->image, fetch->sampler);
    for (unsigned i = 0; i < 4; i++) {
        float colour = fetch->sampler->border[i];
        border.words[i] = is_number ? texel_word(colour) : (uint32_t)(int32_t)within(colour, INT32_MIN, INT32_MAX);
    }
    return border;
}

// One of the texels around a place: `corner` has a bit for each axis on which it is the second.
static struct channels read_corner(const struct fetch *fetch, unsigned corner) {
    int64_t at[3] = {0, 0, 0};
    for (unsigned i = 0; i < fetch->count; i++) {
        at[i] = resolve(fetch, i, fetch->axes[i].first + (corner >> i & 1));
        if (at[i] < 0) return read_border(fetch);
    }
    struct texel texel = {at[0], at[1], fetch->image->layers ? fetch->layer : at[2]};
    return texel_read(fetch->image, fetch->sampler, texel, fetch->judge);
}

// The weights and their products are exact in a double, so that a result is rounded once at the end of a sum.
static struct channels mix(const struct fetch *fetch) {
    double sums[4] = {0, 0, 0, 0};
    for (unsigned corner = 0; corner < 1u << fetch->count; corner++) {
        double weight = 1;
        for (unsigned i = 0; i < fetch->count; i++) {
            uint32_t share = fetch->axes[i].share;
            weight *= (double)(corner >> i & 1 ? share : 256 - share) / 256;
        }
        struct channels read = read_corner(fetch, corner);
        for (unsigned i = 0; i < 4; i++) sums[i] += weight * (double)texel_float(read.words[i]);
    }
    struct channels mixed;
    for (unsigned i = 0; i < 4; i++) mixed.words[i] = texel_word((float)sums[i]);
    return mixed;
}

// "counter-clockwise from the lower left": the first axis is the lowest bit of a corner.
static struct channels gather(const struct fetch *fetch, unsigned component) {
    static const unsigned char CORNERS[4] = {2, 3, 1, 0};
    struct channels gathered;
    for (unsigned i = 0; i < 4; i++) gathered.words[i] = read_corner(fetch, CORNERS[i]).words[component];
    return gathered;
}

static uint32_t find_layer(const struct image *image, uint32_t word, uint32_t asked, unsigned face) {
    uint64_t wanted = word & GEOMETRY_IS_LAYERED ? asked : 0, last = image->layers ? image->layers - 1 : 0;
    if ((word & GEOMETRY_AXES) == GEOMETRY_CUBE) {
        uint64_t cubes = image->layers / 6;
        if (wanted >= cubes) wanted = cubes ? cubes - 1 : 0;
        wanted = 6 * wanted + face;
    }
    return (uint32_t)(wanted > last ? last : wanted);
}

void texture_sample(const struct image *image, const struct sampler *sampler, uint32_t word, struct texel_area *area,
                    const struct texel_judge *judge) {
    struct fetch fetch = {.image = image, .sampler = sampler, .judge = judge, .count = word & GEOMETRY_AXES};
    struct sampler of_cube = *sampler;
    bool is_float = word & FETCH_FLOATS;
    unsigned component = word >> FETCH_GATHERS & 7, face = 0;
    bool filters = is_float && sampler->filters && texel_is_number(image, sampler) && !image->is_linear;
    if (fetch.count == GEOMETRY_CUBE) {
        float where[2];
        face = find_face(area, where);
        area->coordinates[0] = texel_word(where[0]);
        area->coordinates[1] = texel_word(where[1]);
        fetch.count = 2;
        of_cube.normalized = true;
        fetch.sampler = &of_cube;
    }
    fetch.layer = find_layer(image, word, area->layer, face);
    for (unsigned i = 0; i < fetch.count; i++) {
        fetch.axes[i] = find_on_axis(&fetch, i, area->coordinates[i], is_float, filters || component);
        fetch.axes[i].first += area->offsets[i];
    }
    struct channels result = component ? gather(&fetch, component - 1) : filters ? mix(&fetch) : read_corner(&fetch, 0);
    for (unsigned i = 0; i < 4; i++) {
        if (word & FETCH_HALVES)
            area->content.halves[i] =
                (uint16_t)format_narrow(texel_float(result.words[i]), 5, 10, ROUND_NEAREST_EVEN);
        else
            area->content.words[i] = result.words[i];
    }
}
