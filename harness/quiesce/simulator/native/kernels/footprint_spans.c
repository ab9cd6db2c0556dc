#include "kernels/footprint_spans.h"

#include <string.h>

enum size_kind {
    CONSTANT, PARAMETER, OF_BLOCK, OF_GRID, VARIABLE, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, SHIFT_RIGHT,
    AND, OR, XOR, LEAST, MOST, SIGNED_32, UNSIGNED_32,
};

struct span_of span_sum(struct span_of one, struct span_of other) {
    bool begins = one.least > -LIMIT && other.least > -LIMIT, ends = one.most < LIMIT && other.most < LIMIT;
    return (struct span_of){begins ? clamp((__int128)one.least + other.least) : -LIMIT,
                            ends ? clamp((__int128)one.most + other.most) : LIMIT};
}

struct span_of span_times(struct span_of span, int64_t factor) {
    struct span_of turned = {span.most == LIMIT ? -LIMIT : -span.most, span.least == -LIMIT ? LIMIT : -span.least};
    if (!factor) return (struct span_of){0, 0};
    struct span_of of = factor > 0 ? span : turned;
    __int128 by = factor > 0 ? factor : -(__int128)factor;
    return (struct span_of){of.least <= -LIMIT ? -LIMIT : clamp(of.least * by),
                            of.most >= LIMIT ? LIMIT : clamp(of.most * by)};
}

// -- sizes -----------------------------------------------------------------------------------------------------------

static bool parameter(const struct footprint_launch *launch, int64_t offset, int64_t bits, int64_t *value) {
    uint64_t read = 0;
    if (offset < 0 || bits < 8 || bits > 64 || offset + bits / 8 > launch->parameter_bytes) return false;
    memcpy(&read, launch->parameters + offset, (size_t)bits / 8);
    *value = (int64_t)(read << (64 - bits)) >> (64 - bits);
    return true;
}

// Numbers wrap as those of the processor do; forms are compared only where they are far from that.
static bool compute(enum size_kind kind, int64_t a, int64_t b, int64_t *value) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    bool divides = kind == DIVIDE || kind == REMAINDER;
    if (divides && (a < 0 || b <= 0)) return false;
    if (kind == SHIFT_RIGHT && (a < 0 || b <= 0)) return false;
    if ((kind == LEAST || kind == MOST) && (a < 0 || b < 0)) return false;
    switch (kind) {
        case ADD: *value = (int64_t)(x + y); return true;
        case SUBTRACT: *value = (int64_t)(x - y); return true;
        case MULTIPLY: *value = (int64_t)(x * y); return true;
        case DIVIDE: *value = a / b; return true;
        case REMAINDER: *value = a % b; return true;
        case SHIFT_RIGHT: *value = a / b; return true;
        case AND: *value = a & b; return true;
        case OR: *value = a | b; return true;
        case XOR: *value = a ^ b; return true;
        case LEAST: *value = a < b ? a : b; return true;
        case MOST: *value = a > b ? a : b; return true;
        case SIGNED_32: *value = (int32_t)x; return true;
        case UNSIGNED_32: *value = (uint32_t)x; return true;
        default: return false;
    }
}

void footprint_sizes(struct judging *judging) {
    const struct footprint_launch *launch = judging->launch;
    for (int64_t i = 0; i < judging->size_count; i++) {
        const int64_t *size = &judging->sizes[i * SIZE_WORDS];
        int64_t *value = &judging->values[i], a = size[1], b = size[2];
        bool *is_known = &judging->are_known[i];
        switch ((enum size_kind)size[0]) {
            case CONSTANT: *value = a; *is_known = true; break;
            case PARAMETER: *is_known = parameter(launch, a, b, value); break;
            case OF_BLOCK: *value = launch->block[a]; *is_known = true; break;
            case OF_GRID: *value = launch->grid[a]; *is_known = true; break;
            case VARIABLE:
                *value = (int64_t)launch->variable(launch->of, (uint64_t)a);
                *is_known = *value != 0;
                break;
            default:
                if (size[0] >= SIGNED_32) b = a;  // it is computed of one size
                *is_known = judging->are_known[a] && judging->are_known[b] &&
                            compute((enum size_kind)size[0], judging->values[a], judging->values[b], value);
        }
    }
}

bool form_read(const struct judging *judging, int64_t number, struct form *form) {
    const int64_t *words = &judging->forms[number * FORM_WORDS];
    *form = (struct form){.constant = judging->values[words[0]]};
    if (!judging->are_known[words[0]]) return false;
    for (int64_t i = 0; i < words[1]; i++) {
        int64_t factor = words[3 + 2 * i];
        if (!judging->are_known[factor]) return false;
        if (!judging->values[factor]) continue;
        form->atoms[form->count] = words[2 + 2 * i];
        form->factors[form->count++] = judging->values[factor];
    }
    return true;
}

// -- spans -----------------------------------------------------------------------------------------------------------

struct span_of form_span(struct judging *judging, const struct form *form) {
    struct span_of span = {clamp(form->constant), clamp(form->constant)};
    for (unsigned i = 0; i < form->count; i++)
        span = span_sum(span, span_times(atom_span(judging, form->atoms[i]), form->factors[i]));
    return span;
}

// Up to which round a loop goes that goes on only where a form, of which the round is an atom, is at most 0; or where
// it is not 0.
static int64_t last_round(struct judging *judging, const int64_t *condition, int64_t round) {
    struct form form, others;
    int64_t factor = 0;
    if (!form_read(judging, condition[0], &form)) return LIMIT;
    others = form;
    others.count = 0;
    for (unsigned i = 0; i < form.count; i++) {
        if (form.atoms[i] == round) factor = form.factors[i];
        if (form.atoms[i] == round) continue;
        others.atoms[others.count] = form.atoms[i];
        others.factors[others.count++] = form.factors[i];
    }
    if (condition[1]) {  // it differs from 0
        bool comes = factor && !others.count && (others.constant < 0) != (factor < 0) && factor > -LIMIT;
        if (!others.count && !others.constant) return 0;
        return comes && !(others.constant % factor) ? -(others.constant / factor) : LIMIT;
    }
    struct span_of span = form_span(judging, &others);
    if (factor <= 0 || is_endless(span)) return LIMIT;
    return span.least > 0 ? 0 : -span.least / factor + 1;
}

static struct span_of rounds_of(struct judging *judging, int64_t number, uint64_t conditions) {
    struct span_of span = {0, LIMIT};
    for (int64_t i = 0; i < judging->condition_count; i++) {
        if (!(conditions >> i & 1)) continue;
        int64_t last = last_round(judging, &judging->conditions[i * CONDITION_WORDS], number);
        if (last < span.most) span.most = last;
    }
    return span;
}

static struct span_of quotient(struct judging *judging, int64_t number, int64_t by) {
    struct form form;
    if (!form_read(judging, number, &form) || by <= 0) return (struct span_of){-LIMIT, LIMIT};
    struct span_of span = form_span(judging, &form);
    if (is_endless(span) || span.least < 0) return (struct span_of){-LIMIT, LIMIT};
    return (struct span_of){span.least / by, span.most / by};
}

static struct span_of find_span(struct judging *judging, int64_t number) {
    const int64_t *atom = &judging->atoms[number * ATOM_WORDS];
    const struct footprint_launch *launch = judging->launch;
    struct span_of endless = {-LIMIT, LIMIT};
    switch ((enum atom_kind)atom[0]) {
        case THREAD: return (struct span_of){0, (int64_t)launch->block[atom[1]] - 1};
        case BLOCK: return (struct span_of){0, (int64_t)launch->grid[atom[1]] - 1};
        case ROUND: return rounds_of(judging, number, (uint64_t)atom[1]);
        case QUOTIENT:
            return judging->are_known[atom[2]] ? quotient(judging, atom[1], judging->values[atom[2]]) : endless;
        case BELOW:
            if (!judging->are_known[atom[1]] || judging->values[atom[1]] <= 0) return endless;
            return (struct span_of){0, clamp((__int128)judging->values[atom[1]] - 1)};
        default: return endless;
    }
}

// One that depends on itself has no end.
struct span_of atom_span(struct judging *judging, int64_t number) {
    if (judging->have_span[number]) return judging->spans[number];
    if (judging->asks[number]) return (struct span_of){-LIMIT, LIMIT};
    judging->asks[number] = true;
    judging->spans[number] = find_span(judging, number);
    judging->have_span[number] = true;
    judging->asks[number] = false;
    return judging->spans[number];
}

bool duties_are_kept(struct judging *judging, uint64_t duties) {
    static const struct span_of RANGES[] = {
        {INT32_MIN, INT32_MAX}, {0, UINT32_MAX}, {1 - LIMIT, LIMIT - 1}, {0, LIMIT - 1}};
    for (int64_t i = 0; i < judging->duty_count; i++) {
        struct form form;
        const int64_t *duty = &judging->duties[i * DUTY_WORDS];
        if (!(duties >> i & 1)) continue;
        if (!form_read(judging, duty[0], &form)) return false;
        struct span_of span = form_span(judging, &form), range = RANGES[duty[1] & 3];
        if (span.least < range.least || span.most > range.most) return false;
    }
    return true;
}
