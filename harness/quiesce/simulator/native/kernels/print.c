#include "kernels/print.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/abi.h"
#include "kernels/watch.h"

enum { SPECIFIER_BYTES = 32 };

static bool is_written, is_muted;
static FILE *nowhere;

static FILE *output(void) {
    if (is_muted && !nowhere) nowhere = fopen("/dev/null", "we");
    return is_muted && nowhere ? nowhere : stdout;
}

struct arguments {
    uint64_t at;
    int count;
};

static uint64_t take(struct arguments *arguments, unsigned bytes) {
    uint64_t value = 0;
    arguments->at = (arguments->at + bytes - 1) / bytes * bytes;
    memcpy(&value, (const void *)arguments->at, bytes);
    arguments->at += bytes;
    arguments->count++;
    return value;
}

// One specifier with its flags: "%[flags][width][.precision][size]type". A star takes a number from the arguments.
struct specifier {
    char text[SPECIFIER_BYTES];
    unsigned length;
    bool is_long;
    unsigned halves;  // "h" and "hh"
    char type;  // 0: it is none
};

static const char *read_specifier(const char *at, struct specifier *specifier, struct arguments *arguments) {
    *specifier = (struct specifier){.text = "%", .length = 1};
    for (at++; *at && !specifier->type; at++) {
        if (strchr("diouxXcsfFeEgGaAp", *at)) specifier->type = *at;
        else if (!strchr("-+ #0123456789.*hlLjzt", *at)) return at;
        if (specifier->length + 12 >= SPECIFIER_BYTES) return at;
        if (*at == '*') {
            int width = (int)take(arguments, 4);
            specifier->length += (unsigned)snprintf(specifier->text + specifier->length, 12, "%d", width);
        } else if (strchr("lLjzt", *at)) {
            specifier->is_long = true;
        } else if (*at == 'h') {
            specifier->halves++;
        } else if (!specifier->type) {
            specifier->text[specifier->length++] = *at;
        }
    }
    return at;
}

// Reads a text once outside of the C library, which is never left where a text turns out to be nowhere.
static void touch_text(const char *text, const struct specifier *specifier) {
    const char *precision = memchr(specifier->text, '.', specifier->length);
    long bytes = precision ? strtol(precision + 1, NULL, 10) : -1;
    volatile size_t length = bytes < 0 ? strlen(text) : strnlen(text, (size_t)bytes);
    (void)length;
}

static void print_number(struct specifier *specifier, struct arguments *arguments) {
    char *end = specifier->text + specifier->length;
    if (specifier->type == 's') {
        const char *text = (const char *)take(arguments, 8);
        if (!text) text = "(null)";
        *end = 0;
        touch_text(text, specifier);
        strcpy(end, "s");
        fprintf(output(), specifier->text, text);
    } else if (strchr("fFeEgGaA", specifier->type)) {
        uint64_t bits = take(arguments, 8);
        double value;
        memcpy(&value, &bits, sizeof value);
        sprintf(end, "%c", specifier->type);
        fprintf(output(), specifier->text, value);
    } else if (specifier->type == 'p') {
        strcpy(end, "p");
        fprintf(output(), specifier->text, (void *)take(arguments, 8));
    } else if (specifier->is_long) {
        sprintf(end, "ll%c", specifier->type);
        fprintf(output(), specifier->text, (long long)take(arguments, 8));
    } else {
        sprintf(end, "%s%c", specifier->halves > 1 ? "hh" : specifier->halves ? "h" : "", specifier->type);
        fprintf(output(), specifier->text, (int)take(arguments, 4));
    }
}

int quiesce_kernel_print(struct kernel_context *context, const char *format, uint64_t address) {
    (void)context;
    struct arguments arguments = {address, 0};
    if (!format) return -1;
    is_written = true;
    watch_hold();
    for (const char *at = format; *at;) {
        const char *next = strchrnul(at, '%');
        fwrite(at, 1, (size_t)(next - at), output());
        if (!*next) break;
        if (next[1] == '%') {
            putc('%', output());
            at = next + 2;
            continue;
        }
        struct specifier specifier;
        at = read_specifier(next, &specifier, &arguments);
        if (specifier.type)
            print_number(&specifier, &arguments);
        else
            fwrite(next, 1, (size_t)(at - next), output());  // none that printf knows
    }
    watch_release();
    return arguments.count;
}

void quiesce_kernel_assert(struct kernel_context *context, const char *message, const char *file, uint32_t line,
                           const char *function, uint32_t thread) {
    if (is_muted) return;
    const uint32_t *block = context->block_index, *size = context->block;
    const struct specifier whole = {.length = 0};
    const char *const texts[] = {message, file, function};
    for (unsigned i = 0; i < 3; i++)
        if (texts[i]) touch_text(texts[i], &whole);
    fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file ? file : "",
            line, function ? function : "", block[0], block[1], block[2], thread % size[0], thread / size[0] % size[1],
            thread / size[0] / size[1], message ? message : "");
}

void print_mute(bool mute) { is_muted = mute; }

void print_end(void) {
    if (is_written) fflush(stdout);
    is_written = false;
}
