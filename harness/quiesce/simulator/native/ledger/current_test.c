#include "ledger/current_test.h"

#include <stdlib.h>
#include <string.h>

// One after another. Launches that still wait to run name older ones.
static struct name {
    struct name *before;
    size_t length;
    char text[];
} *latest;

const char *current_test(void) {
    const char *given = getenv("PYTEST_CURRENT_TEST");
    if (!given || !*given) return NULL;
    const char *phase = strrchr(given, ' ');  // "tests/test_sum.py::test_sum (call)"
    size_t length = phase ? (size_t)(phase - given) : strlen(given);
    if (latest && latest->length == length && !memcmp(latest->text, given, length)) return latest->text;
    struct name *name = malloc(sizeof *name + length + 1);
    if (!name) return NULL;
    *name = (struct name){latest, length};
    memcpy(name->text, given, length);
    name->text[length] = 0;
    latest = name;
    return name->text;
}

void current_test_close(void) {
    while (latest) {
        struct name *before = latest->before;
        free(latest);
        latest = before;
    }
}
