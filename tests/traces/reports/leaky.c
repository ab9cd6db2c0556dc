// Leaks one block of each kind that leak checkers tell apart; the reports beside it are what they said of it.
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    char rest[16];
};

static void *kept;
static char *interior;

static void *make(size_t size_bytes) {
    void *block = malloc(size_bytes);
    memset(block, 0, size_bytes);
    return block;
}

static void lose(void) {
    for (int i = 0; i < 3; i++) make(216);
}

static void lose_chain(void) {
    struct node *head = make(sizeof *head);
    head->next = make(40);
}

int main(void) {
    lose();
    lose_chain();
    kept = make(176);
    interior = (char *)make(64) + 8;
    free(make(8));
    memset(make(1), 0, 0); /* the last pointer that registers and the stack hold */
    return 0;
}
