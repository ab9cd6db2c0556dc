#include "provided.h"

#include "run.h"
#include "system.h"

int provided_open(provided *by, const struct link_map *beside) {
    int has_simulator = 0, has_front = 0;
    while (beside->l_prev) beside = beside->l_prev;
    for (; beside; beside = beside->l_next) {
        const char *path = beside->l_name;
        if (!path) continue;
        if (!has_simulator && is_same(base_name(path), SIMULATOR_NAME))
            has_simulator = dynamic_symbols_open(&by->simulator, beside);
        else if (!has_front && run_has(path) && begins_with(base_name(path), "libcudart.so"))
            has_front = dynamic_symbols_open(&by->front, beside);
    }
    return has_simulator && has_front;
}

ElfW(Addr) provided_find(const provided *by, const char *name) {
    ElfW(Addr) found = dynamic_symbols_find(&by->simulator, name);
    return found ? found : dynamic_symbols_find(&by->front, name);
}
