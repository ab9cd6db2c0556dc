// Variables in PTX text: .global and .const declarations outside of functions (PTX ISA, "Variables", "State Spaces").
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "code/image.h"

struct reader {
    const char *at;
    add_variable *add;
    void *context;
};

struct declared {
    bool is_external, is_variable, is_constant;
    unsigned element_bytes;  // of the type; 0: none that has a size
    unsigned elements;       // of a vector
    bool is_floating;
};

// -- words -----------------------------------------------------------------------------------------------------------

static void skip_space(struct reader *reader) {
    for (;;) {
        const char *end = NULL;
        if (isspace((unsigned char)*reader->at)) {
            reader->at++;
            continue;
        }
        if (!strncmp(reader->at, "//", 2)) end = strchr(reader->at, '\n');
        else if (!strncmp(reader->at, "/*", 2)) end = strstr(reader->at, "*/");
        else return;
        reader->at = end ? end + (*end == '*' ? 2 : 1) : strchr(reader->at, 0);
    }
}

static bool is_of_word(char character) {
    return isalnum((unsigned char)character) || character == '_' || character == '$' || character == '%';
}

// A word, a directive with its point, or one other character; its length, 0 at the end of the text.
static size_t next(struct reader *reader, const char **word) {
    skip_space(reader);
    *word = reader->at;
    if (!*reader->at) return 0;
    if (is_of_word(*reader->at) || *reader->at == '.') {
        reader->at++;
        while (is_of_word(*reader->at)) reader->at++;
    } else {
        reader->at++;
    }
    return (size_t)(reader->at - *word);
}

static bool is(const char *word, size_t length, const char *wanted) {
    return length == strlen(wanted) && !memcmp(word, wanted, length);
}

static bool comes(struct reader *reader, char wanted) {
    skip_space(reader);
    if (*reader->at != wanted) return false;
    reader->at++;
    return true;
}

// Behind the bracket that closes one, which was read.
static void skip_brackets(struct reader *reader, char opens, char closes) {
    const char *word;
    for (unsigned depth = 1; depth && next(reader, &word);) {
        if (*word == '"')  // in a directive for a debugger
            while (*reader->at && *reader->at++ != '"') continue;
        depth += *word == opens;
        depth -= *word == closes;
    }
}

static void skip_statement(struct reader *reader) {
    const char *word;
    while (next(reader, &word) && *word != ';')
        if (*word == '{') {
            skip_brackets(reader, '{', '}');
            return;
        }
}

// -- declarations ----------------------------------------------------------------------------------------------------

static unsigned size_of_type(const char *word, size_t length) {
    static const struct {
        const char *name;
        unsigned bytes;
    } TYPES[] = {{".b8", 1},     {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2}, {".s16", 2}, {".f16", 2},
                 {".bf16", 2},   {".b32", 4}, {".u32", 4}, {".s32", 4}, {".f32", 4}, {".f16x2", 4},
                 {".bf16x2", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}, {".b128", 16},
                 {".texref", 8}, {".surfref", 8}, {".samplerref", 8}};  // the number of an object
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (is(word, length, TYPES[i].name)) return TYPES[i].bytes;
    return 0;
}

// Writes one number as an element; returns false where it is none, such as the name of another variable, or one that
// has to be rounded.
static bool write_number(const char *word, size_t length, bool negative, const struct declared *declared, char *to) {
    unsigned bytes = declared->element_bytes;
    char digits[40], *end;
    if (!isdigit((unsigned char)*word) || length >= sizeof digits || bytes > 8) return false;
    memcpy(digits, word, length);
    digits[length] = 0;
    bool is_bits = digits[0] == '0' && digits[1] && strchr("fFdD", digits[1]);  // 0f3F800000: a number's own bits
    unsigned wanted = digits[1] == 'f' || digits[1] == 'F' ? 4 : 8;
    if (is_bits != declared->is_floating || (is_bits && (negative || bytes != wanted))) return false;
    uint64_t value = strtoull(is_bits ? digits + 2 : digits, &end, is_bits ? 16 : 0);
    if (*end == 'U') end++;
    if (*end) return false;
    if (negative) value = -value;
    memcpy(to, &value, bytes);
    return true;
}

// Reads what stands behind '=' into `content` (NULL: only counts), which has room for `size_bytes`; fewer values than
// elements leave zeros. Returns how many there were, or -1 where one is no plain number, or it is not plain whose value
// one is; the text behind them comes next all the same.
static long read_values(struct reader *reader, const struct declared *declared, uint64_t size_bytes, char *content) {
    const char *word;
    long count = 0;
    bool negative = false, nested = false;
    unsigned depth = 0, bytes = declared->element_bytes;
    for (;;) {
        struct reader before = *reader;
        size_t length = next(reader, &word);
        if (!length || *word == ';' || (*word == ',' && !depth)) {
            *reader = before;
            return nested && content && (uint64_t)count * bytes != size_bytes ? -1 : count;
        }
        if (*word == '{') nested |= depth++ > 0;
        else if (*word == '}') depth--;
        else if (*word == '-') negative = true;
        else if (*word != ',') {
            bool fits = count >= 0 && (!content || (uint64_t)(count + 1) * bytes <= size_bytes);
            char unused[16];
            char *to = content && fits ? content + (uint64_t)count * bytes : unused;
            count = fits && write_number(word, length, negative, declared, to) ? count + 1 : -1;
            negative = false;
            if (*word == '(') skip_brackets(reader, '(', ')');
        }
    }
}

// The bounds of an array behind a name: how many elements; 0 for one that its values tell (name[]).
static uint64_t read_bounds(struct reader *reader) {
    uint64_t elements = 1;
    while (comes(reader, '[')) {
        if (comes(reader, ']')) {
            elements = 0;
            continue;
        }
        skip_space(reader);
        char *end;
        elements *= strtoull(reader->at, &end, 0);
        reader->at = end;
        if (!comes(reader, ']')) skip_brackets(reader, '[', ']');
    }
    return elements;
}

// One name of a declaration, with its bounds and values.
static bool read_variable(struct reader *reader, const char *name, size_t name_bytes, const struct declared *declared) {
    uint64_t element_bytes = (uint64_t)declared->element_bytes * declared->elements;
    struct described described = {name, name_bytes, read_bounds(reader) * element_bytes, NULL, false,
                                  declared->is_constant};
    char *content = NULL;
    if (comes(reader, '=')) {
        struct reader values = *reader;
        long count = read_values(reader, declared, 0, NULL);
        if (!described.size_bytes && count > 0) described.size_bytes = (uint64_t)count * declared->element_bytes;
        content = calloc(1, described.size_bytes ? described.size_bytes : 1);
        if (!content) return false;
        described.unclear = read_values(&values, declared, described.size_bytes, content) < 0;
        if (!described.unclear) described.content = content;
        if (described.unclear && !described.size_bytes) described.size_bytes = declared->element_bytes;  // it exists
    }
    bool goes_on = !described.size_bytes || declared->is_external || reader->add(reader->context, &described);
    free(content);
    return goes_on;
}

// Directives that end with their line.
static bool is_a_line(const char *word, size_t length) {
    static const char *const LINES[] = {".version", ".target", ".address_size", ".file", ".loc"};
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        if (is(word, length, LINES[i])) return true;
    return false;
}

// A statement outside of functions, up to its ';' or the end of its body.
static bool read_statement(struct reader *reader) {
    struct declared declared = {.elements = 1};
    const char *word;
    for (;;) {
        size_t length = next(reader, &word);
        if (!length || *word == ';') return true;
        if (is_a_line(word, length)) {
            reader->at += strcspn(reader->at, "\n");
            return true;
        }
        if (*word == '.') {
            declared.is_external |= is(word, length, ".extern");
            declared.is_constant |= is(word, length, ".const");
            declared.is_variable |= is(word, length, ".global") || declared.is_constant;
            if (is(word, length, ".v2")) declared.elements = 2;
            if (is(word, length, ".v4")) declared.elements = 4;
            if (size_of_type(word, length)) {
                declared.element_bytes = size_of_type(word, length);
                declared.is_floating = word[1] == 'f' || (word[1] == 'b' && word[2] == 'f');
            }
            if (is(word, length, ".align")) next(reader, &word);
            if (is(word, length, ".attribute") && comes(reader, '(')) skip_brackets(reader, '(', ')');
            continue;
        }
        if (!declared.is_variable || !declared.element_bytes) {
            if (*word == '{') skip_brackets(reader, '{', '}');
            else skip_statement(reader);
            return true;
        }
        if (*word == ',') continue;
        if (!read_variable(reader, word, length, &declared)) return false;
    }
}

bool image_read_ptx(const char *text, add_variable *add, void *context) {
    struct reader reader = {text, add, context};
    while (*reader.at) {
        if (!read_statement(&reader)) return false;
        skip_space(&reader);
    }
    return true;
}
