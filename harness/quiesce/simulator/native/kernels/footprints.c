#include "kernels/footprints.h"

#include <stddef.h>

#include "kernels/footprint_spans.h"

enum { LOAD, STORE, CHANGE };

struct term {
    int64_t factor;       // above 0
    struct span_of span;  // of the number that is multiplied
    bool has_block;       // it differs between blocks; then no two of them have the same
    struct form group;    // that number
};

struct access {
    int64_t use, bytes, operation;
    uint64_t start, end;           // the memory that its pointer points into
    bool is_apart;                 // no two blocks use the same of it
    bool is_plain;                 // its terms are known
    struct span_of hull;           // the first and the last address
    int64_t constant;
    unsigned count;
    struct term terms[TERMS_MAX];  // the larger factors last
};

// -- terms -----------------------------------------------------------------------------------------------------------

// The form that a condition says to be at most 0. False: nothing is said.
static bool read_condition(struct judging *judging, int64_t number, struct form *form) {
    const int64_t *condition = &judging->conditions[number * CONDITION_WORDS];
    struct form first;
    if (condition[1] || !duties_are_kept(judging, (uint64_t)condition[4]) || !form_read(judging, condition[0], form))
        return false;
    if (condition[2] < 0) return true;
    if (!form_read(judging, condition[2], &first) || first.count + 1 != form->count) return false;
    for (unsigned i = 0; i < form->count; i++) {  // what holds of the next round now holds of each
        bool is_found = form->atoms[i] == condition[3];
        if (is_found) form->constant -= form->factors[i];
        for (unsigned j = 0; j < first.count; j++)
            is_found |= first.atoms[j] == form->atoms[i] && first.factors[j] == form->factors[i];
        if (!is_found) return false;
    }
    return form->constant == first.constant;
}

static int64_t factor_of(const struct form *form, int64_t atom) {
    for (unsigned i = 0; i < form->count; i++)
        if (form->atoms[i] == atom) return form->factors[i];
    return 0;
}

// How often a form goes into the part of another one that has its atoms, or 0.
static int64_t multiple(const struct form *whole, const struct form *part) {
    int64_t times_ = factor_of(whole, part->atoms[0]) / part->factors[0];
    for (unsigned i = 0; i < part->count; i++)
        if ((__int128)part->factors[i] * times_ != factor_of(whole, part->atoms[i])) return 0;
    return times_;
}

static bool are_same_atoms(const struct form *one, const struct form *other) {
    for (unsigned i = 0; i < one->count; i++)
        if (!factor_of(other, one->atoms[i])) return false;
    return one->count == other->count;
}

static void take_out(struct form *form, const struct form *part) {
    unsigned kept = 0;
    for (unsigned i = 0; i < form->count; i++) {
        if (factor_of(part, form->atoms[i])) continue;
        form->atoms[kept] = form->atoms[i];
        form->factors[kept++] = form->factors[i];
    }
    form->count = kept;
}

static void insert(struct access *access, struct term term) {
    unsigned at = access->count++;
    for (; at && access->terms[at - 1].factor > term.factor; at--) access->terms[at] = access->terms[at - 1];
    access->terms[at] = term;
}

// Whether no two blocks have the same number, where a number takes so many places. Terms come by their size: each
// has to be larger than what all smaller ones come to, once blocks differ in one.
static bool is_apart(const struct term *terms, unsigned count, int64_t width) {
    bool any = false;
    struct span_of below = {0, clamp((__int128)width - 1)};
    for (unsigned i = 0; i < count; i++) {
        any |= terms[i].has_block;
        if (any && (is_endless(below) || terms[i].factor <= below.most - below.least)) return false;
        below = span_sum(below, span_times(terms[i].span, terms[i].factor));
    }
    return true;
}

static bool split(struct judging *judging, struct form form, uint64_t conditions, struct access *to, uint32_t *axes);

// The span of a form whose constant is 0, as conditions of the same atoms bound it. `fewer`: the conditions that have
// fewer atoms.
static struct span_of bounded(struct judging *judging, const struct form *group, uint64_t conditions, uint64_t *fewer) {
    struct span_of span = form_span(judging, group);
    *fewer = 0;
    for (int64_t i = 0; i < judging->condition_count; i++) {
        const struct form *each = &judging->bounds[i];
        if (!(conditions >> i & 1)) continue;
        if (each->count < group->count) *fewer |= (uint64_t)1 << i;
        if (!are_same_atoms(each, group)) continue;
        int64_t sign = multiple(each, group);  // sign x group + constant is at most 0
        if (sign == 1 && -each->constant < span.most) span.most = clamp(-(__int128)each->constant);
        if (sign == -1 && each->constant > span.least) span.least = clamp(each->constant);
    }
    if (span.most < span.least) span.most = span.least;  // no thread comes here
    return span;
}

// Takes some atoms of a form for one number, which conditions bound. Either no two blocks have the same of it, or
// nothing of it differs between blocks.
static void take_group(struct judging *judging, struct form *form, const struct form *bound, uint64_t conditions,
                       struct access *to, uint32_t *axes) {
    uint32_t inside = 0;
    uint64_t fewer;
    int64_t by = multiple(form, bound);
    if (!by || to->count == TERMS_MAX) return;
    struct access parts = {0};
    struct form group = *bound;
    group.constant = 0;
    struct span_of span = bounded(judging, &group, conditions, &fewer);
    if (!split(judging, group, fewer, &parts, &inside)) return;
    if (inside && !is_apart(parts.terms, parts.count, 1)) return;
    if (by < 0) {
        span = span_times(span, -1);
        for (unsigned i = 0; i < group.count; i++) group.factors[i] = -group.factors[i];
    }
    insert(to, (struct term){by < 0 ? -by : by, span, inside != 0, group});
    take_out(form, &group);
    *axes |= inside;
}

static bool take_atom(struct judging *judging, const struct form *form, unsigned at, struct access *to,
                      uint32_t *axes) {
    const int64_t *atom = &judging->atoms[form->atoms[at] * ATOM_WORDS];
    struct span_of span = atom_span(judging, form->atoms[at]);
    int64_t factor = form->factors[at], sign = factor < 0 ? -1 : 1;
    bool is_block = atom[0] == BLOCK && judging->launch->grid[atom[1]] > 1;
    if (to->count == TERMS_MAX || factor <= -LIMIT) return false;
    if (is_block) *axes |= 1u << atom[1];
    insert(to, (struct term){factor * sign, span_times(span, sign), is_block, {0, 1, {form->atoms[at]}, {sign}}});
    return true;
}

// Splits a form into terms: first those of as many atoms as a condition bounds.
static bool split(struct judging *judging, struct form form, uint64_t conditions, struct access *to, uint32_t *axes) {
    for (unsigned atoms = form.count; atoms; atoms--)
        for (int64_t i = 0; i < judging->condition_count; i++)
            if (conditions >> i & 1 && judging->bounds[i].count == atoms)
                take_group(judging, &form, &judging->bounds[i], conditions, to, axes);
    for (unsigned i = 0; i < form.count; i++)
        if (!take_atom(judging, &form, i, to, axes)) return false;
    return true;
}

// -- accesses --------------------------------------------------------------------------------------------------------

static bool find_memory(struct judging *judging, const int64_t *words, struct access *access) {
    for (int64_t i = 0; i < words[6]; i++) {
        int64_t base = words[7 + i];
        uint64_t start, bytes;
        if (!judging->are_known[base] || !judging->launch->find((uint64_t)judging->values[base], &start, &bytes))
            continue;
        if (access->end && access->start != start) return false;
        access->start = start;
        access->end = start + bytes;
    }
    return access->end;
}

// The bytes that the terms before one come to, as addresses, with those of the access itself.
static struct span_of rest_of(const struct access *access, unsigned count) {
    struct span_of span = {access->constant, clamp((__int128)access->constant + access->bytes - 1)};
    for (unsigned i = 0; i < count; i++)
        span = span_sum(span, span_times(access->terms[i].span, access->terms[i].factor));
    return span;
}

static unsigned first_of_blocks(const struct access *access) {
    unsigned at = 0;
    while (at < access->count && !access->terms[at].has_block) at++;
    return at;
}

static bool are_all_axes(const struct judging *judging, uint32_t axes) {
    for (unsigned axis = 0; axis < 3; axis++)
        if (judging->launch->grid[axis] > 1 && !(axes >> axis & 1)) return false;
    return true;
}

static bool read_access(struct judging *judging, int64_t number, struct access *access) {
    const int64_t *words = &judging->accesses[number * ACCESS_WORDS];
    struct form form;
    uint32_t axes = 0;
    *access = (struct access){.use = words[0], .bytes = words[2], .operation = words[3]};
    if (!find_memory(judging, words, access)) return false;
    access->hull = (struct span_of){(int64_t)access->start, (int64_t)access->end - 1};
    if (!form_read(judging, words[1], &form) || !duties_are_kept(judging, (uint64_t)words[4])) return true;
    access->constant = form.constant;
    access->is_plain = split(judging, form, (uint64_t)words[5] & judging->held, access, &axes);
    if (!access->is_plain) return true;
    access->is_apart = are_all_axes(judging, axes) && is_apart(access->terms, access->count, access->bytes);
    struct span_of hull = rest_of(access, access->count);
    if (hull.least > -LIMIT) access->hull.least = hull.least;
    if (hull.most < LIMIT) access->hull.most = hull.most;
    return true;
}

static bool are_same(const struct form *one, const struct form *other) {
    for (unsigned i = 0; i < one->count; i++)
        if (factor_of(other, one->atoms[i]) != one->factors[i]) return false;
    return one->count == other->count;
}

// Whether two accesses have the same larger terms, and no two blocks meet in both of them taken together.
static bool are_alike(const struct access *one, const struct access *other) {
    unsigned first = first_of_blocks(one), others = first_of_blocks(other), count = one->count - first;
    struct term together[TERMS_MAX];
    if (!one->is_apart || !other->is_apart || count != other->count - others || !count) return false;
    for (unsigned i = 0; i < count; i++) {
        struct term a = one->terms[first + i], b = other->terms[others + i];
        if (a.factor != b.factor || a.has_block != b.has_block || (a.has_block && !are_same(&a.group, &b.group)))
            return false;
        if (b.span.least < a.span.least) a.span.least = b.span.least;
        if (b.span.most > a.span.most) a.span.most = b.span.most;
        together[i] = a;
    }
    struct span_of a = rest_of(one, first), b = rest_of(other, others);
    int64_t least = a.least < b.least ? a.least : b.least, most = a.most > b.most ? a.most : b.most;
    if (is_endless(a) || is_endless(b)) return false;
    return is_apart(together, count, clamp((__int128)most - least + 1));
}

static enum alone judge_pair(const struct access *one, const struct access *other) {
    bool are_apart = one->hull.most < other->hull.least || other->hull.most < one->hull.least;
    if (are_apart || are_alike(one, other)) return ALONE_NOT;
    if (one->use == CHANGE || other->use == CHANGE) {
        bool are_equal = one->use == other->use && one->operation == other->operation && one->bytes == other->bytes;
        return are_equal ? ALONE_NOT : ALONE_CHANGES_MEET;
    }
    return one->use == LOAD || other->use == LOAD ? ALONE_READS_WRITTEN : ALONE_WRITES_MEET;
}

static enum alone judge_accesses(struct judging *judging) {
    static struct access all[ACCESSES_MAX];  // the runtime's lock is held
    for (int64_t i = 0; i < judging->access_count; i++) {
        if (!read_access(judging, i, &all[i])) return ALONE_MEMORY_UNKNOWN;
        if (all[i].use == STORE && !all[i].is_plain) return ALONE_PLACE_UNKNOWN;
        if (all[i].use == STORE && !all[i].is_apart) return ALONE_WRITES_MEET;
        for (int64_t j = 0; j < i; j++) {
            enum alone why = all[i].use == LOAD && all[j].use == LOAD ? ALONE_NOT : judge_pair(&all[i], &all[j]);
            if (why) return why;
        }
    }
    return ALONE_NOT;
}

enum alone footprints_judge(const struct footprint_launch *launch) {
    enum { TOTAL, REASON, COUNTS, PARTS = 6, HEADER = COUNTS + PARTS };
    static const int64_t WORDS[PARTS] = {SIZE_WORDS, ATOM_WORDS, FORM_WORDS, DUTY_WORDS, CONDITION_WORDS, ACCESS_WORDS};
    static const int64_t MOST[PARTS] = {SIZES_MAX, ATOMS_MAX, 1 << 20, SET_MAX, SET_MAX, ACCESSES_MAX};
    static struct judging judging;  // large; the runtime's lock is held
    const int64_t *table = launch->table, *parts[PARTS], *at = table ? table + HEADER : NULL;
    if (!table) return ALONE_NOT_UNDERSTOOD;
    if (table[REASON]) return (enum alone)table[REASON];
    for (unsigned i = 0; i < PARTS; i++) {
        if (table[COUNTS + i] > MOST[i]) return ALONE_NOT_UNDERSTOOD;
        parts[i] = at;
        at += WORDS[i] * table[COUNTS + i];
    }
    if (at - table != table[TOTAL]) return ALONE_NOT_UNDERSTOOD;
    judging = (struct judging){.launch = launch,
                               .sizes = parts[0],
                               .atoms = parts[1],
                               .forms = parts[2],
                               .duties = parts[3],
                               .conditions = parts[4],
                               .accesses = parts[5],
                               .size_count = table[COUNTS],
                               .duty_count = table[COUNTS + 3],
                               .condition_count = table[COUNTS + 4],
                               .access_count = table[COUNTS + 5]};
    footprint_sizes(&judging);
    for (int64_t i = 0; i < judging.condition_count; i++)
        judging.held |= (uint64_t)read_condition(&judging, i, &judging.bounds[i]) << i;
    return judge_accesses(&judging);
}

const char *alone_in_words(enum alone why) {
    static const char *const WORDS[] = {
        [ALONE_NOT] = "",
        [ALONE_NOT_UNDERSTOOD] = "it is too long, or does what is not understood",
        [ALONE_WAITS_FOR_MEMORY] = "it waits in a loop for memory to change",
        [ALONE_ORDERS_MEMORY] = "it orders memory between blocks",
        [ALONE_READS_CHANGED] = "it uses what an atomic operation returns, or one whose result depends on the order",
        [ALONE_CHANGES_FLOATS] = "it adds fractions by atomic operations, so that their order shows in the result",
        [ALONE_CALLS] = "it prints, allocates memory, may trap or calls a function that uses memory",
        [ALONE_USES_TEXTURES] = "it uses textures or surfaces",
        [ALONE_COPIES] = "it copies asynchronously",
        [ALONE_READS_PLACE] = "it reads a clock or where it runs",
        [ALONE_PLACE_UNKNOWN] = "it uses an address that only the kernel knows",
        [ALONE_MEMORY_UNKNOWN] = "a pointer leads to no memory that is known",
        [ALONE_WRITES_MEET] = "two blocks may write the same byte",
        [ALONE_READS_WRITTEN] = "a block may read what another one writes",
        [ALONE_CHANGES_MEET] = "a block may use what another one changes by an atomic operation",
    };
    return why < sizeof WORDS / sizeof *WORDS ? WORDS[why] : WORDS[ALONE_NOT_UNDERSTOOD];
}
