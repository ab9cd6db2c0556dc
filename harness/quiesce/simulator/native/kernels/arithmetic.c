#include "kernels/arithmetic.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/formats.h"

// -- rounding modes of the processor ---------------------------------------------------------------------------------

// Control and status words of SSE: exceptions masked, subnormals kept, rounding in bits 13 and 14.
enum { WORD_NEAREST = 0x1f80, WORD_DOWN = 0x3f80, WORD_UP = 0x5f80, WORD_TO_ZERO = 0x7f80 };

static inline uint32_t enter(uint32_t word) {
    uint32_t before;
    __asm__ volatile("stmxcsr %0" : "=m"(before)::"memory");
    __asm__ volatile("ldmxcsr %0" ::"m"(word) : "memory");
    return before;
}

static inline void leave(uint32_t before) { __asm__ volatile("ldmxcsr %0" ::"m"(before) : "memory"); }

// The compiler may not move arithmetic over this, and may not know what the number is.
#define PIN(number) __asm__ volatile("" : "+x"(number)::"memory")

#define TWO(name, mode, word, type, suffix, expression)                             \
    static type quiesce_kernel_##name##_##mode##_##suffix(type a, type b) {         \
        uint32_t before = enter(word);                                              \
        PIN(a);                                                                     \
        PIN(b);                                                                     \
        type result = expression;                                                   \
        PIN(result);                                                                \
        leave(before);                                                              \
        return result;                                                              \
    }
#define ONE(name, mode, word, type, suffix, expression)                             \
    static type quiesce_kernel_##name##_##mode##_##suffix(type a) {                 \
        uint32_t before = enter(word);                                              \
        PIN(a);                                                                     \
        type result = expression;                                                   \
        PIN(result);                                                                \
        leave(before);                                                              \
        return result;                                                              \
    }

static inline float root_f32(float a) {
    __asm__ volatile("sqrtss %0, %0" : "+x"(a));
    return a;
}
static inline double root_f64(double a) {
    __asm__ volatile("sqrtsd %0, %0" : "+x"(a));
    return a;
}

#define ARITHMETIC(mode, word, type, suffix)                 \
    TWO(add, mode, word, type, suffix, a + b)                \
    TWO(sub, mode, word, type, suffix, a - b)                \
    TWO(mul, mode, word, type, suffix, a *b)                 \
    TWO(div, mode, word, type, suffix, a / b)                \
    ONE(sqrt, mode, word, type, suffix, root_##suffix(a))    \
    ONE(rcp, mode, word, type, suffix, (type)1 / a)
ARITHMETIC(rz, WORD_TO_ZERO, float, f32)
ARITHMETIC(rm, WORD_DOWN, float, f32)
ARITHMETIC(rp, WORD_UP, float, f32)
ARITHMETIC(rz, WORD_TO_ZERO, double, f64)
ARITHMETIC(rm, WORD_DOWN, double, f64)
ARITHMETIC(rp, WORD_UP, double, f64)

// glibc's functions follow the rounding mode, with the processor's instruction and without.
static float (*fma_f32)(float, float, float);
static double (*fma_f64)(double, double, double);

#define FUSED(mode, word, type, suffix, function)                                         \
    static type quiesce_kernel_fma_##mode##_##suffix(type a, type b, type c) {            \
        uint32_t before = enter(word);                                                    \
        PIN(a);                                                                           \
        PIN(b);                                                                           \
        PIN(c);                                                                           \
        type result = function(a, b, c);                                                  \
        PIN(result);                                                                      \
        leave(before);                                                                    \
        return result;                                                                    \
    }
FUSED(rz, WORD_TO_ZERO, float, f32, fma_f32)
FUSED(rm, WORD_DOWN, float, f32, fma_f32)
FUSED(rp, WORD_UP, float, f32, fma_f32)
FUSED(rz, WORD_TO_ZERO, double, f64, fma_f64)
FUSED(rm, WORD_DOWN, double, f64, fma_f64)
FUSED(rp, WORD_UP, double, f64, fma_f64)

// -- numbers with fewer bits -----------------------------------------------------------------------------------------

// a * b + c as a double whose last bit says whether something was cut off, so that one more rounding is right.
// The product of two numbers of 11 bits or fewer is exact.
static double fused(double a, double b, double c) {
    double product = a * b;
    PIN(product);  // or the compiler may fuse it with the sum
    double sum = product + c;
    if (!isfinite(sum)) return sum;
    double part = sum - product;
    double error = (product - (sum - part)) + (c - part);
    uint64_t bits = bits_of(sum);
    if (error == 0 || (bits & 1)) return sum;
    return number_of((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

// An integer as a double, odd where bits were lost.
static double from_unsigned(uint64_t value) {
    unsigned cut = value >> 53 ? 11 : 0;
    uint64_t lost = value & ((1ull << cut) - 1);
    return (double)(value >> cut << cut | (uint64_t)(lost != 0) << cut);
}

static uint16_t quiesce_kernel_narrow_f16(double number, uint32_t rounding) {
    return (uint16_t)format_narrow(number, 5, 10, rounding);
}
static uint16_t quiesce_kernel_narrow_bf16(double number, uint32_t rounding) {
    return (uint16_t)format_narrow(number, 8, 7, rounding);
}
static uint32_t quiesce_kernel_narrow_tf32(double number, uint32_t rounding) {
    return format_narrow(number, 8, 10, rounding) << 13;
}
static float quiesce_kernel_narrow_f32(double number, uint32_t rounding) {
    uint32_t bits = format_narrow(number, 8, 23, rounding);
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}
static double quiesce_kernel_widen_f16(uint16_t bits) { return format_widen(bits, 5, 10); }
static uint16_t quiesce_kernel_fma_f16(uint16_t a, uint16_t b, uint16_t c, uint32_t rounding) {
    double sum = fused(format_widen(a, 5, 10), format_widen(b, 5, 10), format_widen(c, 5, 10));
    return (uint16_t)format_narrow(sum, 5, 10, rounding);
}
static uint16_t quiesce_kernel_fma_bf16(uint16_t a, uint16_t b, uint16_t c, uint32_t rounding) {
    double sum = fused(format_widen(a, 8, 7), format_widen(b, 8, 7), format_widen(c, 8, 7));
    return (uint16_t)format_narrow(sum, 8, 7, rounding);
}

static uint16_t quiesce_kernel_narrow_e4m3(double number) { return format_narrow_e4m3(number); }
static uint16_t quiesce_kernel_narrow_e5m2(double number) { return format_narrow_e5m2(number); }
static uint16_t quiesce_kernel_half_of_e4m3(uint16_t bits) {
    return (uint16_t)format_narrow(format_widen_e4m3(bits), 5, 10, ROUND_NEAREST_EVEN);
}
static uint16_t quiesce_kernel_half_of_e5m2(uint16_t bits) {
    return (uint16_t)format_narrow(format_widen(bits, 5, 2), 5, 10, ROUND_NEAREST_EVEN);
}

// -- integers to floating point --------------------------------------------------------------------------------------

// A double that is exact, or odd: rounding it to a shorter format is right.
static double quiesce_kernel_odd_u64(uint64_t value) { return from_unsigned(value); }
static double quiesce_kernel_odd_s64(int64_t value) {
    return value < 0 ? -from_unsigned(-(uint64_t)value) : from_unsigned((uint64_t)value);
}

#define FROM_INTEGER(mode, word)                                          \
    static double quiesce_kernel_cvt_##mode##_f64_s64(int64_t value) {    \
        uint32_t before = enter(word);                                    \
        double result;                                                    \
        __asm__ volatile("cvtsi2sdq %1, %0" : "=x"(result) : "r"(value)); \
        PIN(result);                                                      \
        leave(before);                                                    \
        return result;                                                    \
    }                                                                     \
    static double quiesce_kernel_cvt_##mode##_f64_u64(uint64_t value) {   \
        uint32_t before = enter(word);                                    \
        double high = (double)(uint32_t)(value >> 32) * 0x1p32;           \
        double low = (double)(uint32_t)value;                             \
        PIN(high);                                                        \
        PIN(low);                                                         \
        double result = high + low;                                       \
        PIN(result);                                                      \
        leave(before);                                                    \
        return result;                                      \
    }
FROM_INTEGER(rz, WORD_TO_ZERO)
FROM_INTEGER(rm, WORD_DOWN)
FROM_INTEGER(rp, WORD_UP)

// -- bits ------------------------------------------------------------------------------------------------------------

// PTX's fns: the place of the n-th bit that is set, up or down from a base. All ones: there is none.
static uint32_t quiesce_kernel_fns(uint32_t mask, uint32_t base, int32_t n) {
    int64_t left = n < 0 ? -(int64_t)n : n;
    if (!n) return base < 32 && mask >> base & 1 ? base : UINT32_MAX;
    for (int64_t at = base; at >= 0 && at < 32; at += n > 0 ? 1 : -1)
        if (mask >> at & 1 && !--left) return (uint32_t)at;
    return UINT32_MAX;
}

// -- clocks ----------------------------------------------------------------------------------------------------------

// Not time, but a number that grows with each question: a kernel that prints it prints the same in every run.
static uint64_t now;

static uint64_t quiesce_kernel_clock(void) { return __atomic_add_fetch(&now, 64, __ATOMIC_RELAXED); }

uint64_t kernel_clock(void) { return now; }

// -- the table -------------------------------------------------------------------------------------------------------

#define FUNCTION(name) {#name, (void (*)(void))name},
#define MODES(name, suffix) FUNCTION(name##_rz_##suffix) FUNCTION(name##_rm_##suffix) FUNCTION(name##_rp_##suffix)
#define BOTH(name) MODES(name, f32) MODES(name, f64)
static const struct {
    const char *name;
    void (*address)(void);
} functions[] = {
    BOTH(quiesce_kernel_add) BOTH(quiesce_kernel_sub) BOTH(quiesce_kernel_mul) BOTH(quiesce_kernel_div)
    BOTH(quiesce_kernel_fma) BOTH(quiesce_kernel_sqrt) BOTH(quiesce_kernel_rcp)
    MODES(quiesce_kernel_cvt, f64_s64) MODES(quiesce_kernel_cvt, f64_u64)
    FUNCTION(quiesce_kernel_narrow_f16) FUNCTION(quiesce_kernel_narrow_bf16) FUNCTION(quiesce_kernel_narrow_tf32)
    FUNCTION(quiesce_kernel_narrow_f32) FUNCTION(quiesce_kernel_widen_f16)
    FUNCTION(quiesce_kernel_fma_f16) FUNCTION(quiesce_kernel_fma_bf16)
    FUNCTION(quiesce_kernel_narrow_e4m3) FUNCTION(quiesce_kernel_narrow_e5m2)
    FUNCTION(quiesce_kernel_half_of_e4m3) FUNCTION(quiesce_kernel_half_of_e5m2)
    FUNCTION(quiesce_kernel_odd_s64) FUNCTION(quiesce_kernel_odd_u64)
    FUNCTION(quiesce_kernel_fns) FUNCTION(quiesce_kernel_clock)
    FUNCTION(memcpy) FUNCTION(memmove) FUNCTION(memset)
};

// Approximations, and what LLVM calls where the processor has no instruction for it.
static const char *const mathematics[] = {"exp2f", "log2f",  "sinf", "cosf",  "tanhf", "fma",       "fmaf",     "floor",
                                          "floorf", "ceil",  "ceilf", "trunc", "truncf", "roundeven", "roundevenf"};

// The library of mathematics is looked for when a kernel is loaded: programs whose kernels do not run need none.
static void (*find_mathematics(const char *name))(void) {
    static void *library;
    if (!library) library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;
    void (*function)(void);
    memcpy(&function, &found, sizeof function);
    return function;
}

double kernel_fused(double a, double b, double c) {
    if (!fma_f64) fma_f64 = (double (*)(double, double, double))find_mathematics("fma");
    return fma_f64 ? fma_f64(a, b, c) : a * b + c;
}

void (*kernel_arithmetic_find(const char *name))(void) {
    if (!strncmp(name, "quiesce_kernel_fma_", strlen("quiesce_kernel_fma_"))) {
        fma_f32 = (float (*)(float, float, float))find_mathematics("fmaf");
        fma_f64 = (double (*)(double, double, double))find_mathematics("fma");
        if (!fma_f32 || !fma_f64) return NULL;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name)) return functions[i].address;
    for (size_t i = 0; i < sizeof mathematics / sizeof *mathematics; i++)
        if (!strcmp(mathematics[i], name)) return find_mathematics(name);
    return NULL;
}
