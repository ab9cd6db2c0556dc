#include "restart.h"

#include "memory.h"
#include "system.h"

enum { TEXTS_BYTES = 16 << 20, TEXTS_MAX = 1 << 20 };  // more than the kernel takes for a program
static const char variable[] = "LD_AUDIT=", module[] = "libquiesce-audit.so";

// Return the texts in a file, each of which ends with NUL, as a program takes them; NULL where they can't be had.
static char **texts_in(const char *path) {
    char *content = memory_map(TEXTS_BYTES), **texts = memory_map(TEXTS_MAX * sizeof *texts);
    int file = open_file(path, O_RDONLY);
    if (!content || !texts || file < 0) return NULL;
    long size_bytes = 0, more;
    do {
        more = read_at(file, content + size_bytes, (size_t)(TEXTS_BYTES - size_bytes), size_bytes);
        size_bytes += more > 0 ? more : 0;
    } while (more > 0 && size_bytes < TEXTS_BYTES);
    close_file(file);
    long count = 0;
    for (long at = 0; at < size_bytes && count < TEXTS_MAX - 1; at += (long)length_of(content + at) + 1)
        texts[count++] = content + at;
    return texts;
}

// Leave the module out of a list of paths, in its place.
static void leave_out(char *paths) {
    char *kept = paths;
    while (*paths) {
        char *end = paths;
        while (*end && *end != ':') end++;
        char *next = *end ? end + 1 : end;
        size_t length = (size_t)(end - paths);
        int is_module = length >= sizeof module - 1 && begins_with(end - (sizeof module - 1), module);
        for (char *each = paths; !is_module && each < next; each++) *kept++ = *each;
        paths = next;
    }
    *kept = 0;
}

void restart_without_audit(const char *program) {
    char **words = texts_in("/proc/self/cmdline"), **environment = texts_in("/proc/self/environ");
    if (!words || !environment) return;
    for (char **each = environment; *each; each++)
        if (begins_with(*each, variable)) leave_out(*each + sizeof variable - 1);
    call_system(SYS_execve, (long)program, (long)words, (long)environment, 0);
}
