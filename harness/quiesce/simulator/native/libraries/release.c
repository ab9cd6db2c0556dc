#include "libraries/release.h"

#include "machine/settings.h"

static const struct release *simulated(const struct releases *releases) {
    unsigned first = settings.flavour == FLAVOUR_HIP ? 5 : 11;
    if (settings.version <= first) return &releases->of_first;
    return settings.version == first + 1 ? &releases->of_second : &releases->of_third;
}

int release_as_number(const struct releases *releases) {
    const int *parts = simulated(releases)->parts;
    return parts[0] * releases->major_factor + parts[1] * releases->minor_factor + parts[2];
}

int release_number(const struct library *library, const struct releases *releases, int *version) {
    if (!version) return library->wrong;
    *version = release_as_number(releases);
    return 0;
}

int release_part(const struct library *library, const struct releases *releases, int part, int *value) {
    if (part < 0 || part > 2 || !value) return library->wrong;  // libraryPropertyType: major, minor, patch
    *value = simulated(releases)->parts[part];
    return 0;
}
