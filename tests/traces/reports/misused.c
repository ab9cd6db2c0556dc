// Uses and frees memory as it may not be: what memcheck reports beside leaks.
#include <stdlib.h>

int main(void) {
    char *block = malloc(16), *other = malloc(8);
    block[16] = 1;
    free(block);
    block[1] = block[2];
    free(block);
    free((char *)&other);
    volatile int unset;
    if (unset) other[0] = 1;
    free(other + 1);
    return 0;
}
