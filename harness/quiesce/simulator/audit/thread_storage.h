// Whether thread-local storage leaves room for a module like this one.
#pragma once

#include <link.h>

// Say whether a library that is opened before the program begins takes more static thread-local storage than there is.
int thread_storage_is_short(const struct link_map *map);
