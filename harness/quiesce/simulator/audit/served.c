#include "served.h"

#include "image.h"
#include "run.h"
#include "system.h"

/* A line of the table: "libcudart 12 libcudart.so.12"; "*" is any number, "-" is nobody, "+" comes before the name of a
   compiler, and "?" before that of another flavour's runtime, which is known by its number alone. The first that fits
   counts. */
typedef struct {
    const char *beginning, *number, *stands_in;
} row;

enum { ROWS_MAX = 32, TABLE_BYTES = 4096 };

static char table[TABLE_BYTES];
static row rows[ROWS_MAX];
static int count;

void served_read(void) {
    char path[PATH_BYTES] = "";
    if (!append(path, sizeof path, run_folder()) || !append(path, sizeof path, "/served")) return;
    int file = open_file(path, O_RDONLY);
    if (file < 0) return;
    long size_bytes = read_at(file, table, sizeof table - 1, 0);
    close_file(file);
    const char *words[3] = {table};
    int word = 0;
    for (long at = 0; at < size_bytes && count < ROWS_MAX; at++) {
        char ended = table[at];
        if (ended != ' ' && ended != '\n') continue;
        table[at] = 0;
        if (ended == '\n' && word == 2) rows[count++] = (row){words[0], words[1], words[2]};
        word = ended == '\n' ? 0 : word + 1;
        if (word < 3) words[word] = &table[at + 1];
    }
}

static int is_digit(char character) { return character >= '0' && character <= '9'; }

static int is_hexadecimal(char character) {
    return is_digit(character) || (character >= 'a' && character <= 'f');
}

/* Return what stands behind a library's name, as ".so.12.4", or NULL where it is another's. Tools that bundle libraries
   put a part of a hash there: libcudart-5a077122.so.12.4.127. */
static const char *ending_of(const char *name, const char *beginning) {
    if (!begins_with(name, beginning)) return NULL;
    name += length_of(beginning);
    if (*name == '-') {
        const char *hash = ++name;
        while (is_hexadecimal(*name)) name++;
        if (name - hash < 6) return NULL;
    }
    if (!begins_with(name, ".so") || (name[3] && name[3] != '.')) return NULL;
    for (const char *each = name + 3; *each; each++)
        if (*each != '.' && !is_digit(*each)) return NULL;
    return name;
}

/* Say whether an ending has the number; one without any may be anything. */
static int has_number(const char *ending, const char *number) {
    if (is_same(number, "*") || !ending[3] || !ending[4]) return 1;
    if (!begins_with(ending + 4, number)) return 0;
    return !is_digit(ending[4 + length_of(number)]);
}

service served_as(const char *name, const char **stands_in) {
    const char *base = base_name(name);
    for (int each = 0; each < count; each++) {
        const char *ending = ending_of(base, rows[each].beginning);
        if (ending && has_number(ending, rows[each].number)) {
            *stands_in = rows[each].stands_in;
            if (**stands_in == '?' && !ending[3]) continue;
            if (**stands_in == '?' || **stands_in == '+') return *(*stands_in)++ == '?' ? FOLLOWED : COMPILER;
            return is_same(*stands_in, "-") ? NOT_SERVED : SERVED;
        }
    }
    return NO_RUNTIME;
}

service served_by_content(const char *path, const char **stands_in) {
    image from;
    char soname[SONAME_BYTES];
    if (!image_open(&from, path)) return NO_RUNTIME;
    int found = image_soname(&from, soname);
    image_close(&from);
    return found ? served_as(soname, stands_in) : NO_RUNTIME;
}
