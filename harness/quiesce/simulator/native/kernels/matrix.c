#include "kernels/matrix.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/arithmetic.h"
#include "kernels/formats.h"

enum element { F16, BF16, TF32, F32, F64, S8, U8, S32, E4M3, E5M2 };
enum { ELEMENTS_MAX = 32 * 16, ROWS_AT = 16 };

static unsigned bytes_of(enum element type) {
    switch (type) {
        case S8:
        case U8:
        case E4M3:
        case E5M2: return 1;
        case F16:
        case BF16: return 2;
        case F64: return 8;
        default: return 4;
    }
}

// -- elements --------------------------------------------------------------------------------------------------------

static double read_number(const unsigned char *at, enum element type) {
    uint32_t bits = 0;
    float single;
    double number;
    memcpy(&bits, at, bytes_of(type) < 4 ? bytes_of(type) : 4);
    switch (type) {
        case F16: return format_widen(bits, 5, 10);
        case E5M2: return format_widen(bits, 5, 2);
        case E4M3: return format_widen_e4m3(bits);
        case BF16: bits <<= 16; break;
        case TF32: bits &= 0xffffe000; break;  // a device looks at ten bits of the fraction
        case F64: memcpy(&number, at, sizeof number); return number;
        default: break;
    }
    memcpy(&single, &bits, sizeof single);
    return single;
}

static int64_t read_integer(const unsigned char *at, enum element type) {
    int32_t word;
    if (type == S8) return (int8_t)*at;
    if (type == U8) return *at;
    memcpy(&word, at, sizeof word);
    return word;
}

static void write_number(unsigned char *at, enum element type, double number) {
    float single = (float)number;
    uint32_t nan = 0x7fffffff;  // the only one that arithmetic makes
    uint16_t half;
    switch (type) {
        case F16:
            half = (uint16_t)format_narrow(number, 5, 10, ROUND_NEAREST_EVEN);
            memcpy(at, &half, sizeof half);
            break;
        case F64: memcpy(at, &number, sizeof number); break;
        default: memcpy(at, isnan(single) ? (const void *)&nan : (const void *)&single, sizeof single);
    }
}

// -- where elements are ----------------------------------------------------------------------------------------------

struct place {
    unsigned row, column;
};

// Which element of a matrix a thread has, in the layouts of "mma": threads are in eight groups of four.
static struct place place_of_factor(unsigned lane, unsigned index, unsigned per_word, unsigned height, bool is_second) {
    unsigned group = lane / 4, word = index / per_word, along = lane % 4 * per_word + index % per_word;
    if (is_second) return (struct place){along + word * 4 * per_word, group};
    if (height == 8) return (struct place){group, along + word * 4 * per_word};
    return (struct place){group + word % 2 * 8, along + word / 2 * 4 * per_word};
}

static struct place place_of_sum(unsigned lane, unsigned index) {
    return (struct place){lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2};
}

struct product {
    unsigned m, n, k;
    bool saturates, is_open;  // the layout is ours
    enum element result, first, second, addend;
};

enum matrix { FIRST, SECOND, SUM };

struct shape {
    unsigned rows, columns, count;  // elements of a thread
};

static unsigned registers_of(const struct product *product, enum matrix which, enum element type, unsigned elements) {
    if (product->is_open && which != SUM && type == F16) return 8;
    unsigned bytes = elements * bytes_of(type) / WARP_THREADS;
    return bytes < 4 ? 1 : bytes / 4;
}

static struct shape shape_of(const struct product *product, enum matrix which, enum element type) {
    struct shape shape = {which == SECOND ? product->k : product->m, which == FIRST ? product->k : product->n, 0};
    shape.count = registers_of(product, which, type, shape.rows * shape.columns) * 4 / bytes_of(type);
    return shape;
}

static struct place place_of(const struct product *product, enum matrix which, const struct shape *shape, unsigned lane,
                             unsigned index, enum element type) {
    if (product->is_open) {
        unsigned place = (lane * shape->count + index) % (shape->rows * shape->columns);
        return (struct place){place / shape->columns, place % shape->columns};
    }
    if (which == SUM) return place_of_sum(lane, index);
    unsigned bytes = bytes_of(type);
    return place_of_factor(lane, index, bytes < 4 ? 4 / bytes : 1, product->m, which == SECOND);
}

// -- products --------------------------------------------------------------------------------------------------------

static struct {
    double first[ELEMENTS_MAX], second[ELEMENTS_MAX], sum[ELEMENTS_MAX];
} numbers;
static struct {
    int64_t first[ELEMENTS_MAX], second[ELEMENTS_MAX], sum[ELEMENTS_MAX];
} integers;

static bool is_integer(enum element type) { return type == S8 || type == U8 || type == S32; }

// Brings a matrix together out of the registers of all threads, which begin at an offset. Returns the offset after it.
static unsigned gather(const struct product *product, struct kernel_thread *const *threads, enum matrix which,
                       enum element type, unsigned offset, double *to, int64_t *to_integers) {
    struct shape shape = shape_of(product, which, type);
    for (unsigned lane = 0; lane < WARP_THREADS; lane++)
        for (unsigned index = 0; index < shape.count; index++) {
            const unsigned char *at = (const unsigned char *)threads[lane]->value + offset + index * bytes_of(type);
            struct place place = place_of(product, which, &shape, lane, index, type);
            unsigned number = place.row * shape.columns + place.column;
            if (number >= ELEMENTS_MAX) continue;
            if (is_integer(type)) to_integers[number] = read_integer(at, type);
            else to[number] = read_number(at, type);
        }
    return offset + shape.count * bytes_of(type);
}

static void scatter(const struct product *product, struct kernel_thread *const *threads) {
    struct shape shape = shape_of(product, SUM, product->result);
    for (unsigned lane = 0; lane < WARP_THREADS; lane++)
        for (unsigned index = 0; index < shape.count; index++) {
            unsigned char *at = (unsigned char *)threads[lane]->value + index * bytes_of(product->result);
            struct place place = place_of(product, SUM, &shape, lane, index, product->result);
            unsigned number = place.row * shape.columns + place.column;
            if (number >= ELEMENTS_MAX) continue;
            int32_t word = (int32_t)integers.sum[number];
            if (is_integer(product->result)) memcpy(at, &word, sizeof word);
            else write_number(at, product->result, numbers.sum[number]);
        }
}

static int64_t limit(int64_t sum, bool saturates) {
    if (!saturates) return sum;
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
}

// Products of short numbers are exact as doubles. Their sum is rounded once, to the type of the result, where a device
// may round after each step.
static void multiply(const struct product *product) {
    unsigned m = product->m, n = product->n, k = product->k;
    for (unsigned row = 0; row < m; row++)
        for (unsigned column = 0; column < n; column++) {
            unsigned at = row * n + column;
            double sum = 0;
            int64_t whole = integers.sum[at];
            for (unsigned i = 0; i < k; i++) {
                if (is_integer(product->result))
                    whole += integers.first[row * k + i] * integers.second[i * n + column];
                else if (product->result == F64)
                    numbers.sum[at] = kernel_fused(numbers.first[row * k + i], numbers.second[i * n + column],
                                                   numbers.sum[at]);
                else
                    sum += numbers.first[row * k + i] * numbers.second[i * n + column];
            }
            integers.sum[at] = limit(whole, product->saturates);
            numbers.sum[at] += sum;
        }
}

static void run_product(struct kernel_thread *const *threads) {
    uint32_t size = threads[0]->operand_b, types = threads[0]->operand_c;
    struct product product = {size & 63, size >> 6 & 63, size >> 12 & 255, size >> 20 & 1, size >> 21 & 1,
                              types & 15, types >> 4 & 15, types >> 8 & 15, types >> 12 & 15};
    unsigned offset = gather(&product, threads, FIRST, product.first, 0, numbers.first, integers.first);
    offset = gather(&product, threads, SECOND, product.second, offset, numbers.second, integers.second);
    gather(&product, threads, SUM, product.addend, offset, numbers.sum, integers.sum);
    multiply(&product);
    scatter(&product, threads);
}

// -- rows out of shared memory ---------------------------------------------------------------------------------------

// Row r of a matrix of 8 by 8 is where thread 8 * matrix + r says. Thread t has two elements of row t / 4.
static void move_rows(struct kernel_thread *const *threads, bool loads) {
    unsigned count = threads[0]->operand_b;
    bool transposes = threads[0]->operand_c;
    for (unsigned matrix = 0; matrix < count; matrix++)
        for (unsigned lane = 0; lane < WARP_THREADS; lane++)
            for (unsigned half = 0; half < 2; half++) {
                unsigned row = lane / 4, column = lane % 4 * 2 + half;
                unsigned from = transposes ? column : row, at = transposes ? row : column;
                uint64_t start;
                memcpy(&start, (const void *)threads[matrix * 8 + from]->value, sizeof start);
                char *memory = (char *)start + at * 2;
                char *own = (char *)threads[lane]->value + ROWS_AT + matrix * 4 + half * 2;
                memcpy(loads ? own : memory, loads ? memory : own, 2);
            }
}

void matrix_run(struct kernel_thread *const threads[WARP_THREADS]) {
    switch (threads[0]->operation) {
        case OPERATION_LOAD_MATRIX: move_rows(threads, true); break;
        case OPERATION_STORE_MATRIX: move_rows(threads, false); break;
        default: run_product(threads);
    }
}
