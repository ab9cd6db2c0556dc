#include "kernels/access_log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "machine/disk.h"
#include "machine/settings.h"

enum { LINE_BYTES = 16384, TEXT_BYTES = 1536, PLACE_BYTES = 3 * TEXT_BYTES + 128, COUNT_BYTES = 20 };

static int open_log(int more) {
    char path[FOLDER_BYTES + 64];
    if (!*settings.folder) return -1;
    snprintf(path, sizeof path, "%s.accesses", ledger_stem());
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | more, 0600);
}

static const char *plain(const char *text, char to[TEXT_BYTES]) {
    snprintf(to, TEXT_BYTES, "%s", text ? text : "");
    for (char *each = to; *each; each++)
        if ((unsigned char)*each < ' ') *each = ' ';
    return to;
}

// FILE:LINE, or nothing. Returns `to`.
static const char *source(const char *file, uint32_t line, char to[TEXT_BYTES]) {
    enum { NUMBER_BYTES = 16 };
    size_t length = strlen(plain(line ? file : NULL, to));
    if (length >= TEXT_BYTES - NUMBER_BYTES) length = TEXT_BYTES - NUMBER_BYTES;
    if (length) snprintf(to + length, NUMBER_BYTES, ":%u", line);
    return to;
}

// The four fields that say where an access is. Returns `to`.
static const char *in_words(const struct logged_place *place, char to[PLACE_BYTES]) {
    char file[TEXT_BYTES], caller[TEXT_BYTES], instruction[TEXT_BYTES];
    snprintf(to, PLACE_BYTES, "%s\t%s\t%u\t%s", source(place->file, place->line, file),
             source(place->caller, place->caller_line, caller), place->ptx_line,
             plain(place->instruction, instruction));
    return to;
}

static const char *other_in_words(const struct logged_access *access, char to[PLACE_BYTES]) {
    char place[PLACE_BYTES];
    const uint32_t *block = access->other_block, *thread = access->other_thread;
    if (!access->has_other) return "\t\t\t\t\t\t";
    snprintf(to, PLACE_BYTES, "%u,%u,%u\t%u,%u,%u\t%d\t%s", block[0], block[1], block[2], thread[0], thread[1],
             thread[2], access->other_writes, in_words(&access->other, place));
    return to;
}

// The number of a line, or nothing. Returns `to`.
static const char *line_number(uint64_t line, char to[COUNT_BYTES + 1]) {
    *to = 0;
    if (line != UINT64_MAX) snprintf(to, COUNT_BYTES + 1, "%" PRIu64, line);
    return to;
}

int64_t access_log_add(const struct logged_access *access) {
    char made[COUNT_BYTES + 1], freed[COUNT_BYTES + 1];
    char line[LINE_BYTES], test[TEXT_BYTES], kernel[TEXT_BYTES], place[PLACE_BYTES], other[PLACE_BYTES];
    char array[TEXT_BYTES], next[TEXT_BYTES];
    int log = open_log(0);
    if (log < 0) {
        if (*settings.folder) ledger_miss(FULL_ACCESSES);
        return -1;
    }
    off_t end = lseek(log, 0, SEEK_END);
    const uint32_t *block = access->block, *thread = access->thread;
    static const char FORMAT[] = "%0*d\t%" PRIu64 "\t%s\t%s\t%u,%u,%u\t%u,%u,%u\t%s\t%s\t%s\t%s\t%s\t%s\n";
    int length = snprintf(line, sizeof line, FORMAT, COUNT_BYTES, 1,
                          access->launch, plain(access->test, test), plain(access->kernel, kernel), block[0], block[1],
                          block[2], thread[0], thread[1], thread[2], in_words(&access->place, place),
                          other_in_words(access, other), plain(access->arrays[0], array),
                          plain(access->arrays[1], next), line_number(access->made, made),
                          line_number(access->freed, freed));
    bool written = end >= 0 && disk_allows((uint64_t)end + (uint64_t)length) &&
                   write(log, line, (size_t)length) == length;
    if (!written) ledger_miss(FULL_ACCESSES);
    if (!written && end >= 0 && ftruncate(log, end)) end = -1;
    close(log);
    return written ? end : -1;
}

void access_log_count(int64_t place, uint64_t count) {
    char digits[COUNT_BYTES + 1];
    int log = place < 0 ? -1 : open_log(0);
    if (log < 0) return;
    snprintf(digits, sizeof digits, "%0*" PRIu64, COUNT_BYTES, count);
    if (pwrite(log, digits, COUNT_BYTES, place) < 0) fputs("quiesce: a count could not be noted\n", stderr);
    close(log);
}
