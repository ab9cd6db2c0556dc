#include "machine/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings settings;
int quiesce_embedded_version;

enum { NAME_BYTES = 32, OF_A_MAJOR = 1000, CUDA_LATEST = 13 };

static const struct settings DEFAULTS = {
    .flavour = FLAVOUR_CUDA,
    .version = 12,
    .devices = 1,
    .capacity_bytes = 16ull << 30,
    .pinned_capacity_bytes = 16ull << 30,
    .granularity_bytes = 512,
    .ring_entries = 1 << 18,
    .red_zone_bytes = 64,
    .kernel_threads = 1,
    .poison = true,
};

#define NUMBER(member) offsetof(struct settings, member), sizeof DEFAULTS.member
static const struct number {
    const char *name;
    size_t offset, bytes;
    uint64_t least, most;
} NUMBERS[] = {
    {"version", NUMBER(version), 1, 99},
    {"devices", NUMBER(devices), 1, DEVICES_MAX},
    {"capacity", NUMBER(capacity_bytes), 0, 1ull << 63},
    {"pinned", NUMBER(pinned_capacity_bytes), 0, 1ull << 63},
    {"granularity", NUMBER(granularity_bytes), 1, 1ull << 30},
    {"seed", NUMBER(seed), 0, UINT64_MAX},
    {"ring", NUMBER(ring_entries), 16, 1ull << 28},
    {"saved", NUMBER(saved_bytes), 0, 1ull << 50},
    {"redzone", NUMBER(red_zone_bytes), 0, 1 << 16},
    {"kernels", NUMBER(kernels), 0, 1},
    {"checks", NUMBER(checks), 0, 1},
    {"hosts", NUMBER(hosts), 0, 1},
    {"orders", NUMBER(orders), 0, 1000},
    {"races", NUMBER(race_launches), 0, 1 << 30},
    {"strict", NUMBER(is_strict), 0, 1},
    {"stop", NUMBER(faults_stop), 0, 1},
    {"threads", NUMBER(kernel_threads), 1, 64},
    {"seconds", NUMBER(kernel_seconds), 0, 1000000},
    {"poison", NUMBER(poison), 0, 1},
    {"stacks", NUMBER(stacks), 0, 1},
    {"follows", NUMBER(follows), 0, 1},
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
    {"recycle", "late", offsetof(struct settings, recycle), RECYCLE_LATE},
    {"recycle", "never", offsetof(struct settings, recycle), RECYCLE_NEVER},
};

static bool parse_number(const char *value, uint64_t least, uint64_t most, uint64_t *number) {
    char *end;
    errno = 0;
    *number = strtoull(value, &end, 10);
    return !errno && *value >= '0' && *value <= '9' && !*end && *number >= least && *number <= most;
}

static bool copy_text(char *target, size_t bytes, const char *value) {
    if (strlen(value) >= bytes) return false;
    strcpy(target, value);
    return true;
}

static void store(struct settings *settings, const struct number *row, uint64_t number) {
    char *place = (char *)settings + row->offset;
    switch (row->bytes) {
        case sizeof(bool): *(bool *)place = number; break;
        case sizeof(unsigned): *(unsigned *)place = (unsigned)number; break;
        default: *(uint64_t *)place = number;
    }
}

static bool set(struct settings *settings, const char *name, const char *value) {
    uint64_t number;
    if (!strcmp(name, "folder")) return copy_text(settings->folder, sizeof settings->folder, value);
    if (!strcmp(name, "fail")) return copy_text(settings->fail, sizeof settings->fail, value);
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (!strcmp(name, NUMBERS[i].name)) {
            if (!parse_number(value, NUMBERS[i].least, NUMBERS[i].most, &number)) return false;
            store(settings, &NUMBERS[i], number);
            return true;
        }
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strcmp(name, WORDS[i].name) && !strcmp(value, WORDS[i].value)) {
            *(int *)((char *)settings + WORDS[i].offset) = WORDS[i].meaning;
            return true;
        }
    return false;
}

static const char *explain(const char *name, const char *value) {
    static char text[sizeof "'' can't be '': write a number from 18446744073709551615 to 18446744073709551615" +
                     NAME_BYTES + FOLDER_BYTES];
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (!strcmp(name, NUMBERS[i].name)) {
            snprintf(text, sizeof text, "'%s' can't be '%s': write a number from %" PRIu64 " to %" PRIu64, name, value,
                     NUMBERS[i].least, NUMBERS[i].most);
            return text;
        }
    size_t length = (size_t)snprintf(text, sizeof text, "'%s' can't be '%s'", name, value);
    const char *before = ": write ";
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strcmp(name, WORDS[i].name)) {
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", before, WORDS[i].value);
            before = " or ";
        }
    return text;
}

const char *settings_parse(struct settings *settings, const char *text) {
    *settings = DEFAULTS;
    char name[NAME_BYTES], value[FOLDER_BYTES];
    while (*text) {
        const char *end = strchrnul(text, ';');
        const char *equals = memchr(text, '=', (size_t)(end - text));
        if (!equals) return "a setting has no '=': write NAME=VALUE";
        size_t name_bytes = (size_t)(equals - text), value_bytes = (size_t)(end - equals - 1);
        if (name_bytes >= sizeof name || value_bytes >= sizeof value) return "a setting is too long";
        memcpy(name, text, name_bytes);
        memcpy(value, equals + 1, value_bytes);
        name[name_bytes] = value[value_bytes] = 0;
        if (!set(settings, name, value)) return explain(name, value);
        text = *end ? end + 1 : end;
    }
    unsigned embedded = (unsigned)quiesce_embedded_version / OF_A_MAJOR;
    if (settings->follows && embedded && embedded <= CUDA_LATEST) settings->version = embedded;
    return NULL;
}
