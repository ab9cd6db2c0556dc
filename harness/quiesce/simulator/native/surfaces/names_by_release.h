// Which functions a driver or runtime of a release has, by name.
#pragma once

#include <stdbool.h>

enum lookup { NAME_FOUND, NAME_UNKNOWN, NAME_NEWER };

// Looks for the latest form of a function that a client of that release knows; `simulated` gets its whole name, which
// lasts. A name that says its form itself stands for that one. NAME_NEWER: later releases have it.
enum lookup name_look_up(const char *name, int release, bool per_thread, const char **simulated);

// Whether a client that finds no function of this name has to do without: it is one of a later release, or of none.
// Clients that try NAME_v2 before NAME find that.
bool name_is_missed(const char *name);

int name_release(void);  // of the driver or runtime that is simulated, as the tables count
