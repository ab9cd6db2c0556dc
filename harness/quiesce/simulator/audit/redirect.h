// Redirects the public functions of CUDA runtimes that were linked in statically to the simulated one.
#pragma once

#include <link.h>

// Look at an object that was just mapped, and keep in mind what is to be redirected in it.
void redirect_look_at(struct link_map *map, const char *path);

// Redirect it, once the libraries that it needs are mapped as well. None of its code has run yet.
void redirect_pending(void);

// Forget an object that goes away before that.
void redirect_forget(const struct link_map *map);
