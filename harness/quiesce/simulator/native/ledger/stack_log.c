#include "ledger/stack_log.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/mappings.h"

#define MAGIC 0x31534b4353455551ull  // "QUESCKS1", little-endian

enum { MAPPINGS_MAX = 4096, LINE_BYTES = 4096 + 128 };

static struct record_log records;

// The executable mappings that the log holds.
static struct code {
    uint64_t start, end;
} mappings[MAPPINGS_MAX];
static unsigned mappings_count;

static uint32_t intern(uint32_t kind, const void *content, uint32_t length_bytes) {
    return record_log_intern(&records, kind, content, length_bytes);
}

uint32_t stack_log_text(const char *text, uint32_t length_bytes) { return intern(RECORD_TEXT, text, length_bytes); }

// -- mappings --------------------------------------------------------------------------------------------------------

static bool is_mapped(uint64_t address) {
    for (unsigned i = 0; i < mappings_count; i++)
        if (mappings[i].start <= address && address < mappings[i].end) return true;
    return false;
}

static void note_mapping(char *line) {
    struct found {
        uint64_t start, end, offset;
        char name[LINE_BYTES];
    } found;
    char access[8];
    int name_at = 0;
    const char *format = "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n";
    if (sscanf(line, format, &found.start, &found.end, access, &found.offset, &name_at) != 4) return;
    if (access[2] != 'x') return;
    if (is_mapped(found.start) || mappings_count == MAPPINGS_MAX) return;
    char *name = line + (name_at ? name_at : (int)strlen(line));
    name[strcspn(name, "\n")] = 0;
    size_t length = strlen(name);
    memcpy(found.name, name, length);
    if (record_log_append(&records, RECORD_MAPPING, &found, (uint32_t)(offsetof(struct found, name) + length)))
        mappings[mappings_count++] = (struct code){found.start, found.end};
}

// -- stacks ----------------------------------------------------------------------------------------------------------

uint32_t stack_log_native(const uint64_t *addresses, uint32_t count) {
    bool unknown = false;
    for (uint32_t i = 0; i < count; i++) unknown |= !is_mapped(addresses[i]);
    if (unknown) mappings_lines(note_mapping);
    return count ? intern(RECORD_NATIVE, addresses, count * (uint32_t)sizeof *addresses) : 0;
}

uint32_t stack_log_python(const struct python_frame *frames, uint32_t count) {
    return count ? intern(RECORD_PYTHON, frames, count * (uint32_t)sizeof *frames) : 0;
}

uint32_t stack_log_stack(const uint32_t parts[2]) {
    uint32_t number = parts[0] || parts[1] ? intern(RECORD_STACK, parts, 2 * (uint32_t)sizeof *parts) : 0;
    if (!number) records.header->lost++;
    return number;
}

// -- beginning and end -----------------------------------------------------------------------------------------------

bool stack_log_open(const char *folder) {
    char path[1024] = "";
    int process = (int)getpid();
    if (*folder) snprintf(path, sizeof path, "%s/%d.stacks", folder, process);
    for (int i = 1; *path && access(path, F_OK) == 0; i++)
        snprintf(path, sizeof path, "%s/%d-%d.stacks", folder, process, i);
    return record_log_open(&records, path, MAGIC, STACKS_LAYOUT, FULL_STACKS);
}

void stack_log_close(void) {
    record_log_close(&records);
    mappings_count = 0;
}

const void *stack_log(void) { return records.header; }
