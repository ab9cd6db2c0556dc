// Objects of the vendors' libraries: handles of cuBLAS, plans of cuFFT, generators of cuRAND, communicators of NCCL.
//
// What an object can do is alike in all of them: it is made for the current device, has a stream, some settings and
// perhaps a workspace, and ends. A library is its statuses. Every function here takes the lock and gives it back, and
// answers in the statuses of the object's library; `function` is the name that the client called, a literal.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "machine/export.h"
#include "machine/status.h"

enum { SETTINGS_MAX = 22 };  // of an object

struct fft_callbacks;

struct library {
    enum thing thing;
    int no_object;  // what it answers for a handle that names nothing of this library
    int wrong;      // for another argument
    int no_memory;
    int failed;     // for everything else
    const struct library *also;  // whose handles it takes as well, or NULL
    int unsupported;  // for what is not simulated, as vendor_libraries.py has it
    uint64_t workspace_bytes;             // that come with an object
    bool waits;                           // whether the end of an object waits for its device
    int64_t first_values[SETTINGS_MAX];  // of the settings
};

struct library_object {
    const struct library *library;
    uint64_t hidden_handle, serial;  // see hidden.h
    unsigned device;
    uint64_t hidden_stream;           // as the client gave it
    uint64_t workspace;               // memory of the device that goes with the object, or 0
    uint64_t workspace_bytes;
    uint64_t hidden_area, area_bytes;  // the client's own memory in its stead
    int64_t values[SETTINGS_MAX];
    struct fft_callbacks *callbacks;  // of a plan (fft_callbacks.h); NULL: it has none
    int64_t calls, changes;  // calls that compute since the last change of a setting; such changes
};

// Begin a call, and end it. NULL: it has no object, and *answer is what it answers; the lock is free again.
enum status object_enter(const char *function);
int object_leave(const struct library *library, enum status status);
struct library_object *object_of_call(const char *function, const struct library *library, uint64_t handle,
                                      int *answer);

// For calls that are under way.
enum status object_make(const struct library *library, uint64_t *handle);
struct library_object *object_find(const struct library *library, uint64_t handle);
void object_end(struct library_object *object);
enum status object_take_workspace(struct library_object *object, uint64_t bytes);  // instead of the one that it had
enum status object_check_stream(const struct library_object *object, uint64_t stream);

// Whole calls.
int object_create(const char *function, const struct library *library, void **handle);
int object_destroy(const char *function, const struct library *library, void *handle);
int object_set_stream(const char *function, const struct library *library, void *handle, void *stream);
int object_get_stream(const char *function, const struct library *library, void *handle, void **stream);
int object_set(const char *function, const struct library *library, void *handle, unsigned setting, int64_t value,
               int64_t value_max);
int object_get(const char *function, const struct library *library, void *handle, unsigned setting, int *value);
int object_set_area(const char *function, const struct library *library, void *handle, void *area, size_t bytes);
