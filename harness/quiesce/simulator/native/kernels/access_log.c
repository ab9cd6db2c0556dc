#include "kernels/access_log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "machine/settings.h"

enum { LINE_BYTES = 16384, TEXT_BYTES = 2048, COUNT_BYTES = 20 };

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

int64_t access_log_add(const struct logged_access *access) {
    char line[LINE_BYTES], test[TEXT_BYTES], kernel[TEXT_BYTES], file[TEXT_BYTES], instruction[TEXT_BYTES];
    char place[TEXT_BYTES + 16] = "";
    int log = open_log(0);
    if (log < 0) return -1;
    off_t end = lseek(log, 0, SEEK_END);
    if (access->file && access->line) snprintf(place, sizeof place, "%s:%u", plain(access->file, file), access->line);
    const uint32_t *block = access->block, *thread = access->thread;
    int length = snprintf(line, sizeof line,
                          "%0*d\t%" PRIu64 "\t%s\t%s\t%u,%u,%u\t%u,%u,%u\t%s\t%u\t%s\n", COUNT_BYTES, 1,
                          access->launch, plain(access->test, test), plain(access->kernel, kernel), block[0], block[1],
                          block[2], thread[0], thread[1], thread[2], place, access->ptx_line,
                          plain(access->instruction, instruction));
    bool written = end >= 0 && write(log, line, (size_t)length) == length;
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
