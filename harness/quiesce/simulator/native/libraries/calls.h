// How the tables of libraries are written: each row is a function of the vendor's, by library, name and deed.
//
// A library's functions have its vendor's names only in the look-alike libraries that stubs.py writes, which lead
// here: where a vendor's library is installed, all of its functions are its own.
#pragma once

#include "libraries/object.h"
#include "libraries/release.h"

#define SIMULATED(name) simulated_##name
#define FUNCTION(name) EXPORT int SIMULATED(name)

#define CREATE(library, name) \
    FUNCTION(name)(void **handle) { return object_create(#name, &library, handle); }
#define DESTROY(library, name) \
    FUNCTION(name)(void *handle) { return object_destroy(#name, &library, handle); }
#define SET_STREAM(library, name) \
    FUNCTION(name)(void *handle, void *stream) { return object_set_stream(#name, &library, handle, stream); }
#define GET_STREAM(library, name) \
    FUNCTION(name)(void *handle, void **stream) { return object_get_stream(#name, &library, handle, stream); }
#define SET(library, name, setting, most) \
    FUNCTION(name)(void *handle, int value) { return object_set(#name, &library, handle, setting, value, most); }
#define SET_WIDE(library, name, setting) \
    FUNCTION(name)(void *handle, uint64_t value) { \
        return object_set(#name, &library, handle, setting, (int64_t)(value & INT64_MAX), INT64_MAX); \
    }
#define GET(library, name, setting) \
    FUNCTION(name)(void *handle, int *value) { return object_get(#name, &library, handle, setting, value); }
#define SET_AREA(library, name) \
    FUNCTION(name)(void *handle, void *area, size_t bytes) { \
        return object_set_area(#name, &library, handle, area, bytes); \
    }

// Versions: into a number, of an object as well or not, as a size, and part by part.
#define VERSION(library, name, releases) \
    FUNCTION(name)(int *version) { return release_number(&library, &releases, version); }
#define VERSION_OF(library, name, releases) \
    FUNCTION(name)(void *handle, int *version) { \
        (void)handle; \
        return release_number(&library, &releases, version); \
    }
#define VERSION_SIZE(name, releases) \
    EXPORT size_t SIMULATED(name)(void) { return (size_t)release_as_number(&releases); }
#define PROPERTY(library, name, releases) \
    FUNCTION(name)(int part, int *value) { return release_part(&library, &releases, part, value); }
