// One misuse of the heap for each number: what AddressSanitizer ends a program for.
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    char *block = malloc(16); volatile char sink;
    switch (atoi(words[1])) {
        case 0: free(block); sink = block[1]; break;
        case 1: free(block); free(block); break;
        case 2: block[count + 14] = 1; break;
        case 3: free(block + 1); break;
        case 4: free(&sink); break;
        case 5: *(volatile int *)8 = 1; break;
    }
    return 0;
}
