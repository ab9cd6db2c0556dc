#include "settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 32 };

static const struct settings DEFAULTS = {
    .flavour = FLAVOUR_CUDA,
    .version = 12,
    .devices = 1,
    .capacity_bytes = 16ull << 30,
    .pinned_capacity_bytes = 16ull << 30,
    .granularity_bytes = 512,
    .ring_entries = 1 << 18,
    .red_zone_bytes = 64,
    .poison = true,
};

static const struct number {
    const char *name;
    size_t offset;
    uint64_t least, most;
} NUMBERS[] = {
    {"capacity", offsetof(struct settings, capacity_bytes), 0, 1ull << 63},
    {"pinned", offsetof(struct settings, pinned_capacity_bytes), 0, 1ull << 63},
    {"granularity", offsetof(struct settings, granularity_bytes), 1, 1ull << 30},
    {"seed", offsetof(struct settings, seed), 0, UINT64_MAX},
    {"ring", offsetof(struct settings, ring_entries), 16, 1ull << 28},
    {"redzone", offsetof(struct settings, red_zone_bytes), 0, 1 << 16},
};

static const struct word {
    const char *name, *value;
    size_t offset;
    int meaning;
} WORDS[] = {
    {"flavour", "cuda", offsetof(struct settings, flavour), FLAVOUR_CUDA},
    {"flavour", "hip", offsetof(struct settings, flavour), FLAVOUR_HIP},
    {"schedule", "eager", offsetof(struct settings, schedule), SCHEDULE_EAGER},
    {"schedule", "lazy", offsetof(struct settings, schedule), SCHEDULE_LAZY},
    {"schedule", "seeded", offsetof(struct settings, schedule), SCHEDULE_SEEDED},
    {"recycle", "eager", offsetof(struct settings, recycle), RECYCLE_EAGER},
    {"recycle", "never", offsetof(struct settings, recycle), RECYCLE_NEVER},
};

static bool parse_number(const char *value, uint64_t least, uint64_t most, uint64_t *number) {
    char *end;
    *number = strtoull(value, &end, 10);
    return *value >= '0' && *value <= '9' && !*end && *number >= least && *number <= most;
}

static bool copy_text(char *target, size_t bytes, const char *value) {
    if (strlen(value) >= bytes) return false;
    strcpy(target, value);
    return true;
}

static bool set(struct settings *settings, const char *name, const char *value) {
    uint64_t number;
    if (!strcmp(name, "folder")) return copy_text(settings->folder, sizeof settings->folder, value);
    if (!strcmp(name, "fail")) return copy_text(settings->fail, sizeof settings->fail, value);
    if (!strcmp(name, "version")) {
        bool valid = parse_number(value, 1, 99, &number);
        settings->version = (unsigned)number;
        return valid;
    }
    if (!strcmp(name, "devices")) {
        bool valid = parse_number(value, 1, DEVICES_MAX, &number);
        settings->devices = (unsigned)number;
        return valid;
    }
    if (!strcmp(name, "poison")) {
        bool valid = parse_number(value, 0, 1, &number);
        settings->poison = number;
        return valid;
    }
    if (!strcmp(name, "stacks")) {
        bool valid = parse_number(value, 0, 1, &number);
        settings->stacks = number;
        return valid;
    }
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (!strcmp(name, NUMBERS[i].name))
            return parse_number(value, NUMBERS[i].least, NUMBERS[i].most,
                                (uint64_t *)((char *)settings + NUMBERS[i].offset));
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strcmp(name, WORDS[i].name) && !strcmp(value, WORDS[i].value)) {
            *(int *)((char *)settings + WORDS[i].offset) = WORDS[i].meaning;
            return true;
        }
    return false;
}

const char *settings_parse(struct settings *settings, const char *text) {
    *settings = DEFAULTS;
    char name[NAME_BYTES], value[FOLDER_BYTES];
    while (*text) {
        const char *end = strchrnul(text, ';');
        const char *equals = memchr(text, '=', (size_t)(end - text));
        if (!equals) return "a setting without '='";
        size_t name_bytes = (size_t)(equals - text), value_bytes = (size_t)(end - equals - 1);
        if (name_bytes >= sizeof name || value_bytes >= sizeof value) return "a setting that is too long";
        memcpy(name, text, name_bytes);
        memcpy(value, equals + 1, value_bytes);
        name[name_bytes] = value[value_bytes] = 0;
        if (!set(settings, name, value)) return "a setting with an unknown name or value";
        text = *end ? end + 1 : end;
    }
    return NULL;
}
