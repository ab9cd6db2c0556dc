#include "compilers/source_texts.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS_BYTES_MAX = 1 << 20 };
static const char BEGINNING[] = "// quiesce-source ";

struct source_texts {
    struct source_texts *next;
    char *name, *text;
};

static void add(struct source_texts **texts, size_t *bytes, const char *name, const char *text) {
    if (!name || !*name || !text || !*text || *bytes + strlen(text) > TEXTS_BYTES_MAX) return;
    struct source_texts *made = calloc(1, sizeof *made);
    if (!made) return;
    *made = (struct source_texts){*texts, strdup(name), strdup(text)};
    *texts = made;
    *bytes += strlen(text);
}

struct source_texts *source_texts_keep(const char *source, const char *name, int count, const char *const *headers,
                                       const char *const *names) {
    struct source_texts *texts = NULL;
    size_t bytes = 0;
    add(&texts, &bytes, name ? name : "default_program", source);  // as nvrtcCreateProgram names it
    for (int i = 0; headers && names && i < count; i++) add(&texts, &bytes, names[i], headers[i]);
    return texts;
}

void source_texts_delete(struct source_texts *texts) {
    while (texts) {
        struct source_texts *gone = texts;
        texts = gone->next;
        free(gone->name);
        free(gone->text);
        free(gone);
    }
}

// Whether a line of a PTX names a file: the name ends one, in quotation marks.
static bool is_named(const char *name, const char *ptx) {
    size_t length = strlen(name);
    for (const char *each = ptx; (each = strstr(each, name)); each++)
        if (each > ptx && (each[-1] == '"' || each[-1] == '/') && each[length] == '"') return true;
    return false;
}

static size_t encode(const char *text, char *to) {
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = strlen(text), bytes = (length + 2) / 3 * 4;
    for (size_t i = 0; to && i < length; i += 3, to += 4) {
        size_t left = length - i;
        uint32_t three = (uint32_t)(unsigned char)text[i] << 16;
        if (left > 1) three |= (uint32_t)(unsigned char)text[i + 1] << 8;
        if (left > 2) three |= (unsigned char)text[i + 2];
        to[0] = DIGITS[three >> 18];
        to[1] = DIGITS[three >> 12 & 63];
        to[2] = left > 1 ? DIGITS[three >> 6 & 63] : '=';
        to[3] = left > 2 ? DIGITS[three & 63] : '=';
    }
    return bytes;
}

// Returns how many bytes a text takes.
static size_t put(const char *text, char *to) {
    if (to) memcpy(to, text, strlen(text));
    return strlen(text);
}

size_t source_texts_note(const struct source_texts *texts, const char *ptx, char *to) {
    size_t bytes = 0;
    for (; texts; texts = texts->next) {
        if (!texts->name || !texts->text || !is_named(texts->name, ptx)) continue;
        bytes += put(BEGINNING, to ? to + bytes : NULL);
        bytes += encode(texts->name, to ? to + bytes : NULL);
        bytes += put(" ", to ? to + bytes : NULL);
        bytes += encode(texts->text, to ? to + bytes : NULL);
        bytes += put("\n", to ? to + bytes : NULL);
    }
    return bytes;
}
