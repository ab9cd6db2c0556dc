#include "embedded.h"

#include "system.h"

static int is_upper(char character) { return character >= 'A' && character <= 'Z'; }

// From 13.0 on there is a function that does nothing and returns 0. It can stay as it is.
static const char empty[] = "__cudaGetProcAddress";

int embedded_is_public(const char *name) {
    if (begins_with(name, "__cuda")) return is_upper(name[6]) && !is_same(name, empty);
    return begins_with(name, "cuda") && is_upper(name[4]);
}

static void move_down(embedded_function *functions, int from, int count) {
    embedded_function moved = functions[from];
    for (int below; (below = 2 * from + 1) < count; from = below) {
        if (below + 1 < count && functions[below].address < functions[below + 1].address) below++;
        if (functions[below].address <= moved.address) break;
        functions[from] = functions[below];
    }
    functions[from] = moved;
}

// Heapsort: no memory, no recursion, and no order that is slow.
static void sort(embedded_function *functions, int count) {
    for (int each = count / 2; each-- > 0;) move_down(functions, each, count);
    for (int left = count; left-- > 1;) {
        embedded_function last = functions[left];
        functions[left] = functions[0];
        functions[0] = last;
        move_down(functions, 0, left);
    }
}

const char *embedded_check(embedded_functions *found) {
    embedded_function *functions = found->functions;
    int last = found->count - 1;
    if (found->count < FUNCTIONS_LEAST) return "only a part of its functions was found";
    sort(functions, found->count);
    if (functions[last].address - functions[0].address > RUNTIME_BYTES_MAX)
        return "its functions lie too far from each other to be one runtime";
    for (int each = 0; each < last; each++)
        if (functions[each + 1].address - functions[each].address < JUMP_BYTES)
            return "two of its functions lie too near to each other";
    return NULL;
}
